package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/hints"
	"github.com/toolcell/toolcell/bridge/runner"
	inline "github.com/toolcell/toolcell/bridge/script"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/urfave/cli/v2"
)

// A packager gets packages for an image, for the commands that do so ahead of a run.
type packager struct {
	*sandboxes.Packages
	image   bridge.Image
	runtime *oci.Runtime
	limits  spec.Limits
	close   func() error
}

// openPackager makes the image ready.
func openPackager(c *cli.Context, s *console.Streams, progress func(done, total int64, text string)) (_ *packager, err error) {
	conf, d, err := settings.ReadWithDirs(c)
	if err != nil {
		return nil, err
	}
	if c.Bool("offline") {
		conf.Pull = rootfs.PullNever
	}
	store, err := openStore(d, conf, newLogger(conf, s.Err))
	if err != nil {
		return nil, err
	}
	closers := []func() error{store.Close}
	closeAll := func() (err error) {
		for _, each := range closers {
			err = errors.Join(err, each())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll())
		}
	}()
	runtime, err := oci.Open(d.Run, conf.UID, conf.GID)
	if err != nil {
		return nil, d.Explain(err)
	}
	closers = append(closers, runtime.Close)
	wheelStore, err := openPackages(d, conf)
	if err != nil {
		return nil, err
	}
	closers = append(closers, wheelStore.Close)
	runnerDir, err := runner.Write(filepath.Join(d.Cache, "runner"))
	if err != nil {
		return nil, d.Explain(err)
	}
	source := &sandboxes.Images{Store: store, Ref: conf.Image, Named: conf.ImageNamed, Runner: runnerDir, Dirs: d, Refresh: func(string, bool) {}}
	img, err := source.Get(c.Context, progress)
	if err != nil {
		return nil, err
	}
	return &packager{
		Packages: &sandboxes.Packages{Store: wheelStore, Sandboxes: sandboxes.Runtime{Runtime: runtime, Dirs: d}, Limits: conf.Limits},
		image:    img, runtime: runtime, limits: conf.Limits, close: closeAll,
	}, nil
}

// compile gives a set its bytecode.
func (p *packager) compile(ctx context.Context, set *packages.Set) error {
	bind := spec.Bind{Source: set.Dir, Target: packages.Target}
	return p.Store.AddBytecode(ctx, set, compilesIn(p.runtime, p.image.Root, p.image.Env, p.limits, bind))
}

// readNeeds reads what the arguments of a command ask for: requirements, or a script.
func readNeeds(c *cli.Context) (n bridge.Needs, err error) {
	isScript := func(arg string) bool {
		if !strings.HasSuffix(arg, ".py") {
			return false
		}
		_, err := os.Lstat(arg)
		return err == nil || !hints.IsWellKnown(arg) // discord.py is a package
	}
	switch arguments := c.Args().Slice(); {
	case len(arguments) == 1 && isScript(arguments[0]):
		return readScriptNeeds(c, arguments[0])
	case slices.ContainsFunc(arguments, isScript):
		return n, console.Usagef("give one script, or requirements")
	}
	for _, line := range c.Args().Slice() {
		r, err := requirement.Parse(line)
		if err != nil {
			return n, console.Usagef("the requirement %q: %v", line, err)
		}
		n.Packages = append(n.Packages, r)
	}
	return n, grantPackages(c, &n)
}

func readScriptNeeds(c *cli.Context, file string) (n bridge.Needs, err error) {
	code, err := readFile(c.Context, file)
	if err != nil {
		return n, err
	}
	header, err := inline.Parse(code)
	if err != nil {
		return n, &console.ExitError{Code: console.ExitUsage, Err: fmt.Errorf("%s: %w", file, err)}
	}
	if header == nil || len(header.Dependencies) == 0 {
		return n, console.Usagef("%s has no # /// script header that names packages", file)
	}
	n = bridge.Needs{Python: header.Python, Packages: header.Dependencies, File: file, Before: header.Before}
	return n, grantPackages(c, &n)
}

// grantPackages asks the policy.
func grantPackages(c *cli.Context, n *bridge.Needs) error {
	conf, err := settings.Read(c)
	if err != nil {
		return err
	}
	n.Grant, err = loadPolicy(conf, slog.New(slog.DiscardHandler)).NewRun().GrantPackages(n.Packages)
	return asUsage(bridge.Invalid(err))
}

// asUsage gives an error of what was asked for the exit code that exec has for it.
func asUsage(err error) error {
	if !bridge.IsInvalid(err) {
		return err
	}
	return console.Invalidf("%s", forTyping(err.Error()))
}

// withNetworkAdvice says what to look at if the index cannot be reached.
func withNetworkAdvice(err error) error {
	if _, ok := errors.AsType[*packages.UnreachableError](err); ok {
		return fmt.Errorf("%w; check the network (behind a proxy, HTTPS_PROXY); toolcell packages list shows what is here", err)
	}
	return err
}

func packagesAdd(c *cli.Context, s *console.Streams) (err error) {
	if !c.Args().Present() {
		return console.Usagef("packages add takes requirements such as 'pandas>=2', or a script")
	}
	needs, err := readNeeds(c)
	if err != nil {
		return err
	}
	progress := console.NewProgress(s.Err, c.Bool("json"))
	defer progress.Close()
	show := console.RunProgress(progress, c.Bool("json"))
	p, err := openPackager(c, s, show)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	offline := c.Bool("offline")
	set, err := p.Ensure(c.Context, p.image, needs, sandboxes.Options{Offline: offline, Anew: !offline}, show)
	if err != nil {
		return asUsage(withNetworkAdvice(err))
	}
	if !offline {
		if err := p.compile(c.Context, set); err != nil {
			if c.Context.Err() != nil {
				return err
			}
			progress.Hide()
			fmt.Fprintf(s.Err, "toolcell: the packages are here, but imports of them stay slow: %v\n", err)
		}
	}
	progress.Close()
	if c.Bool("json") {
		return console.PrintJSON(s, []listedSet{listed(set)})
	}
	_, err = fmt.Fprintf(s.Out, "%s: %s\n", shortID(set.ID), packageList(set))
	return err
}

// A writtenLock is the row of packages lock.
type writtenLock struct {
	File string `json:"file"`
}

func packagesLock(c *cli.Context, s *console.Streams) (err error) {
	if c.NArg() != 1 {
		return console.Usagef("packages lock takes a script")
	}
	file := c.Args().First()
	needs, err := readScriptNeeds(c, file)
	if err != nil {
		return err
	}
	progress := console.NewProgress(s.Err, c.Bool("json"))
	defer progress.Close()
	p, err := openPackager(c, s, console.RunProgress(progress, c.Bool("json")))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	lock, err := p.Lock(c.Context, p.image, needs, sandboxes.Options{Offline: c.Bool("offline")})
	if err != nil {
		return asUsage(withNetworkAdvice(err))
	}
	to, wasLinkTo, err := sandboxes.WriteLock(file, lock)
	if err != nil {
		return err
	}
	progress.Close()
	if wasLinkTo != "" {
		fmt.Fprintf(s.Err, "toolcell: %s was a link to %q; it is a file now, and what the link led to is as it was\n", to, wasLinkTo)
	}
	if c.Bool("json") {
		return console.PrintJSON(s, []writtenLock{{to}})
	}
	_, err = fmt.Fprintln(s.Out, to)
	return err
}
