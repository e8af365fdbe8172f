package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/footprint"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci"
)

type purgeOptions struct {
	Options
	change installer.Options // of uninstalling, but for the client

	Yes, DryRun bool
}

func purgeCommand(s *console.Streams) *cli.Command {
	c := command("purge", "remove everything that belongs to toolcell: entries in clients, caches, state, logins, your files", "", discoverySettings,
		actionWith(s, func(c *cli.Context, o Options) error {
			p := purgeOptions{Options: o, Yes: c.Bool("yes"), DryRun: c.Bool("dry-run")}
			p.change = installOptionsOf(c, o, discoverServers(o.Settings, shellLogger(o)))
			return purge(c.Context, p)
		}),
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "remove it without asking"},
		&cli.BoolFlag{Name: "dry-run", Usage: "only show what would be removed"})
	c.Description = "It shows what there is, and asks first. Servers that were moved behind toolcell go back into their\n" +
		"clients. While a toolcell process is running, nothing is removed. This cannot be undone: saved\n" +
		"tools, the policy and other files in ~/.config/toolcell are lost."
	return c
}

// A purgeRow is what purge removed, or would remove.
type purgeRow struct {
	DryRun  bool                `json:"dryRun"`
	Running []runningProcess    `json:"running"` // that keep it from being done
	Clients []*installer.Report `json:"clients"` // entries that were taken out; in a dry run, with what would change
	Disk    []footprint.Use     `json:"disk"`    // as it was before
	Own     []string            `json:"ownFiles"`
	Removed []footprint.Removal `json:"removed"`
	Freed   int64               `json:"freed"` // bytes
	Left    []string            `json:"left"`  // what is not removed, and why
	Program string              `json:"program"`
	How     string              `json:"howToRemoveProgram"` // "" if it is not known, or has gone too
}

// A purging is what purge is about to remove.
type purging struct {
	purgeOptions
	clients  clientFiles
	folders  []string // that entries name, and are left
	disk     *footprint.Found
	shown    int64 // bytes that all of it could free
	running  []runningProcess
	failures int
	row      purgeRow
}

func purge(ctx context.Context, o purgeOptions) (err error) {
	if err := o.checkHome(); err != nil {
		return err
	}
	p := &purging{purgeOptions: o}
	if err := p.find(ctx); err != nil {
		return err
	}
	defer func() { p.disk.Close() }()
	if !p.JSON {
		if err := p.show(); err != nil {
			return err
		}
	}
	switch {
	case p.DryRun:
		return p.dryRun(ctx)
	case len(p.running) > 0:
		return p.refuse()
	case p.nothing():
		return p.end()
	case !p.Yes:
		if err := confirm(ctx, p.Options, "Remove all of this?", "nothing was removed"); err != nil {
			return err
		}
	}
	return p.remove(ctx)
}

// checkHome refuses to work for root in the home folder of another user, as sudo may have it, and
// notes whose files are meant.
func (o purgeOptions) checkHome() error {
	user := os.Getenv("SUDO_USER")
	if os.Geteuid() != 0 || user == "" || user == "root" {
		return nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil //nolint:nilerr // then the variables of XDG name all folders
	}
	if info, err := os.Stat(home); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			return console.Invalidf("this would remove files of %s as root; run toolcell purge without sudo, or with sudo -H for root's own", user)
		}
	}
	console.Note(o.Err, "with sudo this is about root's toolcell; for that of "+user+", run it without sudo")
	return nil
}

// find finds what there is. Nothing is changed.
func (p *purging) find(ctx context.Context) (err error) {
	if p.clients, err = findClientFiles(p.change.Discovery, p.Settings); err != nil {
		return err
	}
	p.folders = p.otherFolders()
	if err := p.findRunning(ctx); err != nil {
		return err
	}
	if p.disk, err = footprint.Look(ctx, places(p.Settings)); err != nil {
		return err
	}
	p.row = purgeRow{
		DryRun: p.DryRun, Running: append([]runningProcess{}, p.running...), Clients: []*installer.Report{},
		Disk: append([]footprint.Use{}, p.disk.Uses...), Own: append([]string{}, p.disk.Names...),
		Removed: []footprint.Removal{}, Left: []string{}, Program: program.Self(),
	}
	return nil
}

// backgroundWithin is how long purge waits for work in the background.
const backgroundWithin = 20 * time.Second

// findRunning finds the processes that are in the way. It waits for those that a run has left at work
// on its image.
func (p *purging) findRunning(ctx context.Context) (err error) {
	end, noted := time.Now().Add(backgroundWithin), p.JSON || p.DryRun
	for {
		if p.running, err = runningProcesses(p.Settings); err != nil {
			return p.Settings.Dirs.Explain(err)
		}
		p.running = withNew(p.running, cacheUsers(p.Settings.Dirs))
		slices.SortFunc(p.running, byPID)
		others := slices.ContainsFunc(p.running, func(r runningProcess) bool { return r.Command != backgroundCommand })
		if len(p.running) == 0 || others || p.DryRun || time.Now().After(end) {
			return nil
		}
		if !noted {
			console.Note(p.Err, "waiting for "+p.running[0].String()+", which compiles modules for the next run")
			noted = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// nothing reports whether there is nothing to remove.
func (p *purging) nothing() bool {
	return len(p.clients.files) == 0 && len(p.clients.backups) == 0 && len(p.disk.Uses) == 0
}

// refuse says which processes run.
func (p *purging) refuse() error {
	var pids []string
	var names []string
	for _, r := range p.running {
		names = append(names, r.String())
		if r.PID != 0 {
			pids = append(pids, fmt.Sprint(r.PID))
		}
	}
	cure := "quit the client"
	if len(pids) > 0 {
		cure += ", or end it with: kill " + strings.Join(pids, " ")
	}
	err := fmt.Errorf("nothing was removed: %s; %s", stillRunning(names), cure)
	if p.JSON {
		return errors.Join(console.PrintJSON(p.Streams, []purgeRow{p.row}), err)
	}
	return err
}

func stillRunning(names []string) string {
	if len(names) == 1 {
		return names[0] + " is still running"
	}
	return strings.Join(names, ", ") + " are still running"
}

// remove removes everything. What fails does not keep it from the rest.
func (p *purging) remove(ctx context.Context) error {
	release, err := p.holdStarts()
	if err != nil {
		return err
	}
	defer release()
	keep := p.uninstall(ctx)
	shown := p.disk // uninstalling may have removed some of it
	if p.disk, err = footprint.Look(ctx, places(p.Settings)); err != nil {
		p.disk = shown
		return p.interrupted(err)
	}
	defer shown.Close()
	removed := p.disk.Remove(ctx, removalOrder, keep)
	var left []string
	if ctx.Err() == nil {
		left = p.disk.RemovePlaces()
		shown.RemovePlaces() // what uninstalling has emptied
	}
	if err := p.sumUp(ctx, shown, removed); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return p.interrupted(context.Cause(ctx))
	}
	if p.failures == 0 && len(p.disk.Foreign) == 0 && len(left) > 0 {
		p.fail("something in " + strings.Join(left, " and ") + " is new or in use: run purge again")
	}
	return p.end()
}

// sumUp says what is no longer on the disk, of all that was shown.
func (p *purging) sumUp(ctx context.Context, shown *footprint.Found, removed []footprint.Removal) error {
	now, err := footprint.Look(context.WithoutCancel(ctx), places(p.Settings))
	if err != nil {
		return err
	}
	defer now.Close()
	p.shown = shown.Total() - shown.Shared()
	for _, kind := range removalOrder {
		r := footprint.Removal{Kind: kind}
		if i := slices.IndexFunc(removed, func(r footprint.Removal) bool { return r.Kind == kind }); i >= 0 {
			r = removed[i]
		} else if shown.Use(kind).Files == 0 {
			continue
		}
		r.Freed = shown.Freed(kind, now)
		p.row.Freed += r.Freed
		p.row.Removed = append(p.row.Removed, r)
		if !p.JSON && r.Freed > 0 {
			fmt.Fprintf(p.Stdout(), "removed: %s, %s\n", r.Kind, text.Size(r.Freed))
		}
		if r.Error != "" {
			p.fail(fmt.Sprintf("%s: %s: %s", r.Kind, strings.Join(r.Left, ", "), r.Error))
		}
	}
	return nil
}

// removalOrder has what can be made again first, and the program last: an interrupted purge leaves
// what says how to go on.
var removalOrder = []footprint.Kind{
	footprint.Images, footprint.Packages, footprint.Runner, footprint.Catalogs, footprint.Files, footprint.Record, footprint.Sessions, footprint.Pins,
	footprint.Homes, footprint.Logins, footprint.Tools, footprint.Decisions, footprint.Other, footprint.OwnFiles, footprint.Running, footprint.Program,
}

// holdStarts keeps other processes from starting sandboxes, and ends those that killed processes
// have left.
func (p *purging) holdStarts() (release func(), err error) {
	var all []func()
	release = func() {
		for _, r := range all {
			r()
		}
	}
	for _, dir := range p.Settings.RunDirs() {
		r, instances, err := oci.HoldStarts(dir)
		if err != nil {
			release()
			return nil, p.Settings.Dirs.Explain(err)
		}
		all = append(all, r)
		for _, i := range instances {
			if i.Running { // it has started since
				release()
				p.running = []runningProcess{processOf(ours(i.PID), i.Dir, i.Since)}
				return nil, p.refuse()
			}
		}
		if len(instances) > 0 {
			oci.Sweep(dir)
		}
	}
	return release, nil
}

// interrupted says how to go on.
func (p *purging) interrupted(err error) error {
	console.Note(p.Err, "to remove the rest, run purge again")
	return err
}

// fail notes what could not be done.
func (p *purging) fail(said string) {
	p.failures++
	p.row.Left = append(p.row.Left, said)
	if !p.JSON {
		console.Error(p.Err, said)
	}
}

// end says what is left, and how to remove the program.
func (p *purging) end() error {
	left := append(p.outside(), p.otherEntries()...)
	p.row.Left = append(p.row.Left, left...)
	if exists(p.row.Program) {
		p.row.How = program.This().Origin.Remove
	}
	if p.JSON {
		if err := console.PrintJSON(p.Streams, []purgeRow{p.row}); err != nil {
			return err
		}
	} else {
		p.printEnd(left)
	}
	if p.failures > 0 {
		return &console.ExitError{Code: console.ExitFail} // what failed is printed already
	}
	return nil
}
