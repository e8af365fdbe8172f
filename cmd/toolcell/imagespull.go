package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/urfave/cli/v2"
)

// imagesPull pulls one image after the other: the layers of each come side by side
// as it is, and those that images share come once.
func imagesPull(c *cli.Context, s *console.Streams) error {
	if !c.Args().Present() {
		return console.Usagef("images pull takes references, such as %s", settings.DefaultImage)
	}
	login, err := readLogin(c, s)
	if err != nil {
		return err
	}
	conf, d, err := settings.ReadWithDirs(c)
	if err != nil {
		return err
	}
	store, err := openStoreWith(d, conf, images.Puller{Log: newLogger(conf, s.Err), Login: login})
	if err != nil {
		return err
	}
	defer store.Close()
	var failures []error
	for _, ref := range c.Args().Slice() {
		if err := pullImage(c, s, store, conf, d, ref); err != nil {
			failures = append(failures, d.Explain(err))
		}
		if c.Context.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

func pullImage(c *cli.Context, s *console.Streams, store *rootfs.Store, conf settings.Settings, d settings.Dirs, ref string) error {
	start := time.Now()
	show, closeBars := func(rootfs.Progress) {}, func() {}
	if console.Terminal(s.Err) {
		b := console.NewBars(c.Context, s.Err)
		show, closeBars = b.Show, b.Close
	}
	root, err := store.Pull(c.Context, ref, show)
	closeBars()
	if err != nil {
		return err
	}
	platform, err := images.ParsePlatform(conf.Platform)
	foreign := err == nil && platform.Architecture != runtime.GOARCH
	if !c.Bool("no-compile") && !foreign && root.NeedsBytecode() {
		if console.Terminal(s.Err) {
			fmt.Fprintln(s.Err, "compiling the image's modules, so that imports are fast")
		}
		if err := compileModules(c.Context, d, conf, root); err != nil {
			if c.Context.Err() != nil {
				return err
			}
			fmt.Fprintf(s.Err, "toolcell: the image is here, but imports in it stay slow: %v\n", err)
		}
	}
	fmt.Fprintf(s.Out, "%s %s (%s)\n", root.Ref, root.Digest, time.Since(start).Round(time.Millisecond))
	return nil
}

// readLogin reads --creds. It returns nil if it is not given.
func readLogin(c *cli.Context, s *console.Streams) (*images.Login, error) {
	given := c.String("creds")
	if given == "" {
		return nil, nil
	}
	user, password, known := strings.Cut(given, ":")
	if user == "" {
		return nil, console.Usagef("--creds is USER[:PASSWORD], and this one has no user")
	}
	if !known {
		var err error
		if password, err = readPassword(c, s, user); err != nil {
			return nil, fmt.Errorf("reading the password: %w", err)
		}
	}
	return &images.Login{User: user, Password: password}, nil
}

func readPassword(c *cli.Context, s *console.Streams, user string) (string, error) {
	if console.Terminal(s.In) && console.Terminal(s.Err) {
		show, err := hideTyping(s)
		if err != nil {
			return "", err
		}
		defer show()
		fmt.Fprintf(s.Err, "password of %s: ", user)
	}
	password, err := console.ReadLine(c.Context, s.In)
	if errors.Is(err, io.EOF) { // the last line may have no end
		err = nil
	}
	if err == nil && password == "" {
		err = errors.New("it is empty")
	}
	return password, err
}
