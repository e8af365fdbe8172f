package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/rootfs"
)

type imagesPullOptions struct {
	Options
	NoCompile bool
	Creds     string // USER[:PASSWORD]
}

func imagesPullCommand(s *console.Streams) *cli.Command {
	do := actionWith(s, func(c *cli.Context, o Options) error {
		return imagesPull(c.Context, imagesPullOptions{o, c.Bool("no-compile"), c.String("creds")})
	})
	return command("pull", "fetch images and unpack them, asking the registry even if a tag is here", "REF…", pullSettings, do,
		&cli.BoolFlag{Name: "no-compile", Usage: "leave compiling the images' modules to the first run"},
		&cli.StringFlag{Name: "creds", Usage: "log in to the registry as `USER[:PASSWORD]`; a password that is not given is asked for, or read from standard input"})
}

// imagesPull pulls one image after the other: the layers of each come side by side
// as it is, and those that images share come once.
func imagesPull(ctx context.Context, o imagesPullOptions) error {
	var err error
	if o.Settings.Puller.Login, err = readLogin(ctx, o); err != nil {
		return err
	}
	return imagesFunc(func(ctx context.Context, _ Options, store *rootfs.Store) error {
		return eachArgument(ctx, o.Options, func(ref string) (*pulledImage, string, error) {
			start := time.Now()
			root, err := pullImage(ctx, o, store, ref)
			if err != nil {
				return &pulledImage{Ref: ref, Error: err.Error()}, "", o.Settings.Dirs.Explain(err)
			}
			took := time.Since(start).Round(time.Millisecond)
			said := fmt.Sprintf("%s %s (%s)\n", root.Ref, root.Digest, took)
			return &pulledImage{Ref: root.Ref, Digest: root.Digest, Millis: took.Milliseconds()}, said, nil
		})
	}).run(ctx, o.Options)
}

// A pulledImage is a row of images pull.
type pulledImage struct {
	Ref    string `json:"ref"`
	Digest string `json:"digest,omitempty"`
	Millis int64  `json:"ms,omitempty"`
	Error  string `json:"error,omitempty"`
}

// pullImage pulls an image and compiles its modules, unless that is left to others.
func pullImage(ctx context.Context, o imagesPullOptions, store *rootfs.Store, ref string) (*rootfs.Root, error) {
	bars := console.NewBars(console.NewProgress(o.Err, o.JSON))
	root, err := store.Pull(ctx, ref, bars.Show)
	bars.Close(err == nil)
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(o.Err, "toolcell:", cancelled(bars))
		}
		return nil, err
	}
	arch := cmp.Or(o.Settings.Puller.Platform.Architecture, runtime.GOARCH)
	if o.NoCompile || arch != runtime.GOARCH || !root.NeedsBytecode(ctx) {
		return root, nil
	}
	progress := console.NewProgress(o.Err, o.JSON)
	defer progress.Close()
	progress.Show("compiling the image's modules, so that imports are fast")
	p, err := openParts(o.Settings, newLogger(o.Settings, o.Err, o.Settings.LogLevel))
	if err == nil {
		err = errors.Join(p.compileImage(ctx, root, o.Settings.Runs.Limits), p.Close())
	}
	if err != nil {
		progress.Close()
		if ctx.Err() != nil {
			fmt.Fprintln(o.Err, "toolcell: cancelled; the image is here, and the first run compiles its modules")
			return nil, err
		}
		fmt.Fprintf(o.Err, "toolcell: the image is here, but imports in it stay slow: %v\n", err)
	}
	return root, nil
}

// cancelled describes what a cancelled pull keeps: its complete layers.
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
func readLogin(ctx context.Context, o imagesPullOptions) (*images.Login, error) {
	if o.Creds == "" {
		return nil, nil
	}
	user, password, known := strings.Cut(o.Creds, ":")
	if user == "" {
		return nil, console.Invalidf("--creds is USER[:PASSWORD], and this one has no user")
	}
	if !known {
		var err error
		if password, err = readPassword(ctx, o.Streams, user); err != nil {
			return nil, fmt.Errorf("reading the password: %w", err)
		}
	}
	return &images.Login{User: user, Password: password}, nil
}

func readPassword(ctx context.Context, s *console.Streams, user string) (password string, err error) {
	if console.Terminal(s.In) && console.Terminal(s.Err) {
		password, err = askLine(ctx, s, "password of "+user, true)
	} else {
		password, err = console.ReadLine(ctx, s.In)
	}
	if errors.Is(err, io.EOF) { // the last line may have no end
		err = nil
	}
	if err == nil && password == "" {
		err = errors.New("it is empty")
	}
	return password, err
}
