package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/hints"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/bridge/scriptheader"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/rootfs/packages"
)

// A packager gets packages for an image, for the commands that do so ahead of a run.
type packager struct {
	parts
	source   *sandboxes.Packages
	image    run.Image
	progress *console.Progress
	show     func(done, total int64, text string) // shows progress
}

// openPackager makes the image ready.
func openPackager(ctx context.Context, o Options) (*packager, error) {
	opened, err := openParts(o.Settings, newLogger(o.Settings, o.Err, o.Settings.LogLevel))
	if err != nil {
		return nil, err
	}
	p := &packager{parts: opened, source: opened.packages(o.Settings), progress: console.NewProgress(o.Err, o.JSON)}
	p.source.Offline = o.Offline
	p.show = console.RunProgress(p.progress, o.JSON)
	if p.image, err = p.parts.image(o.Settings).Get(ctx, p.show); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *packager) Close() error {
	p.progress.Close()
	return p.parts.Close()
}

// readNeeds reads what the arguments of a command ask for: requirements, or a script.
func readNeeds(ctx context.Context, o Options) (n run.Needs, err error) {
	isScript := func(arg string) bool {
		if !strings.HasSuffix(arg, ".py") {
			return false
		}
		_, err := os.Lstat(arg)
		return err == nil || !hints.IsWellKnown(arg) // discord.py is a package
	}
	switch {
	case len(o.Args) == 1 && isScript(o.Args[0]):
		return readScriptNeeds(ctx, o, o.Args[0])
	case slices.ContainsFunc(o.Args, isScript):
		return n, console.Usagef("give one script, or requirements")
	}
	for _, line := range o.Args {
		r, err := requirement.Parse(line)
		if err != nil {
			return n, console.Usagef("the requirement %q: %v", line, err)
		}
		n.Packages = append(n.Packages, r)
	}
	return n, grantPackages(o, &n)
}

func readScriptNeeds(ctx context.Context, o Options, file string) (n run.Needs, err error) {
	code, err := readFile(ctx, file)
	if err != nil {
		return n, err
	}
	header, err := scriptheader.Parse(code)
	if err != nil {
		return n, &console.ExitError{Code: console.ExitUsage, Err: fmt.Errorf("%s: %w", file, err)}
	}
	if header == nil || len(header.Dependencies) == 0 {
		return n, console.Usagef("%s has no # /// script header that names packages", file)
	}
	n = run.Needs{Python: header.Python, Packages: header.Dependencies, File: file, Before: header.Before}
	return n, grantPackages(o, &n)
}

// grantPackages asks the policy.
func grantPackages(o Options, n *run.Needs) (err error) {
	n.Grant, err = loadPolicy(o.Settings, slog.New(slog.DiscardHandler)).NewEnforcer().GrantPackages(n.Packages)
	return asUsage(run.Invalid(err))
}

// asUsage gives an error of what was asked for the exit code that exec has for it, and says
// what to look at if the index cannot be reached.
func asUsage(err error) error {
	if _, ok := errors.AsType[*packages.UnreachableError](err); ok {
		return fmt.Errorf("%w; check the network (behind a proxy, HTTPS_PROXY); toolcell packages list shows what is here", err)
	}
	if !run.IsInvalid(err) {
		return err
	}
	return console.Invalidf("%s", forTyping(err.Error()))
}

func packagesAdd(ctx context.Context, o Options) (err error) {
	needs, err := readNeeds(ctx, o)
	if err != nil {
		return err
	}
	p, err := openPackager(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	set, err := p.source.Ensure(ctx, p.image, needs, !o.Offline, p.show)
	if err != nil {
		return asUsage(err)
	}
	if !o.Offline {
		if err := p.compile(ctx, set, p.image.Root, p.image.Env, o.Settings.Runs.Limits); err != nil {
			if ctx.Err() != nil {
				return err
			}
			p.progress.Hide()
			fmt.Fprintf(o.Err, "toolcell: the packages are here, but imports of them stay slow: %v\n", err)
		}
	}
	p.progress.Close()
	return printRow(o, listed(set), "%s: %s\n", shortID(set.ID), listed(set).names())
}

func packagesLock(ctx context.Context, o Options) (err error) {
	file := o.Args[0]
	needs, err := readScriptNeeds(ctx, o, file)
	if err != nil {
		return err
	}
	p, err := openPackager(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	lock, err := p.source.Lock(ctx, p.image, needs)
	if err != nil {
		return asUsage(err)
	}
	to, wasLinkTo, err := sandboxes.WriteLock(file, lock)
	if err != nil {
		return err
	}
	p.progress.Close()
	if wasLinkTo != "" {
		fmt.Fprintf(o.Err, "toolcell: %s was a link to %q; it is a file now, and what the link led to is as it was\n", to, wasLinkTo)
	}
	return printRow(o, map[string]string{"file": to}, "%s\n", to)
}
