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
	var rows []pulledImage
	var failures []error
	for _, ref := range c.Args().Slice() {
		start := time.Now()
		row := pulledImage{Ref: ref}
		root, err := pullImage(c, s, store, conf, d, ref)
		if err == nil {
			row.Ref, row.Digest, row.Millis = root.Ref, root.Digest, time.Since(start).Milliseconds()
			if !c.Bool("json") {
				_, err = fmt.Fprintf(s.Out, "%s %s (%s)\n", root.Ref, root.Digest, time.Since(start).Round(time.Millisecond))
			}
		}
		if err != nil {
			row.Error = err.Error()
			failures = append(failures, d.Explain(err))
		}
		rows = append(rows, row)
		if c.Context.Err() != nil {
			break
		}
	}
	if c.Bool("json") {
		failures = append(failures, console.PrintJSON(s, rows))
	}
	return errors.Join(failures...)
}

// A pulledImage is a row of images pull.
type pulledImage struct {
	Ref    string `json:"ref"`
	Digest string `json:"digest,omitempty"`
	Millis int64  `json:"ms,omitempty"`
	Error  string `json:"error,omitempty"`
}

// pullImage pulls an image and compiles its modules, unless that is left to others.
func pullImage(c *cli.Context, s *console.Streams, store *rootfs.Store, conf settings.Settings, d settings.Dirs, ref string) (*rootfs.Root, error) {
	bars := console.NewBars(console.NewProgress(s.Err, c.Bool("json")))
	root, err := store.Pull(c.Context, ref, bars.Show)
	bars.Close(err == nil)
	if err != nil {
		if c.Context.Err() != nil {
			fmt.Fprintln(s.Err, "toolcell:", cancelled(bars))
		}
		return nil, err
	}
	platform, err := images.ParsePlatform(conf.Platform)
	foreign := err == nil && platform.Architecture != runtime.GOARCH
	if c.Bool("no-compile") || foreign || !root.NeedsBytecode(c.Context) {
		return root, nil
	}
	progress := console.NewProgress(s.Err, c.Bool("json"))
	defer progress.Close()
	progress.Show("compiling the image's modules, so that imports are fast")
	if err := compileModules(c.Context, d, conf, root); err != nil {
		progress.Close()
		if c.Context.Err() != nil {
			fmt.Fprintln(s.Err, "toolcell: cancelled; the image is here, and the first run compiles its modules")
			return nil, err
		}
		fmt.Fprintf(s.Err, "toolcell: the image is here, but imports in it stay slow: %v\n", err)
	}
	return root, nil
}

// cancelled says what is left of a pull that the user ended: its complete layers.
func cancelled(bars *console.Bars) string {
	switch n := bars.Finished(); n {
	case 0:
		return "cancelled; nothing was kept"
	case 1:
		return "cancelled; the layer that was complete was kept for the next pull"
	default:
		return fmt.Sprintf("cancelled; the %d layers that were complete were kept for the next pull", n)
	}
}

// readLogin reads --creds. It returns nil if it is not given.
func readLogin(c *cli.Context, s *console.Streams) (*images.Login, error) {
	given := c.String("creds")
	if given == "" {
		return nil, nil
	}
	user, password, known := strings.Cut(given, ":")
	if user == "" {
		return nil, console.Invalidf("--creds is USER[:PASSWORD], and this one has no user")
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
