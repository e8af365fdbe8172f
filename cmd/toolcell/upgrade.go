package main

import (
	"context"
	"fmt"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/internal/text"
)

func upgradeCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "upgrade", Usage: "say how to upgrade, or put this version where clients start it",
		Description: "It prints how toolcell was installed, and the command that upgrades it: the tool that installed it\n" +
			"also upgrades it. If clients start a copy in ~/.local/share/toolcell/bin, and this is another\n" +
			"version, as after uvx toolcell@latest, the copy is replaced.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "replace a newer copy"},
			jsonFlag(),
		},
		Action: actionWith(s, func(c *cli.Context, o Options) error { return upgrade(c.Context, o, c.Bool("force")) }),
	}
}

// An upgradeReport is what upgrade says with --json.
type upgradeReport struct {
	Program string `json:"program"` // that clients start
	Version string `json:"version"`
	Did     string `json:"did,omitempty"` // replaced, or kept: the copy is newer
	Was     string `json:"was,omitempty"`
	From    string `json:"from"`    // how this program was installed
	Upgrade string `json:"upgrade"` // what to type
}

func upgrade(ctx context.Context, o Options, force bool) error {
	p := program.This()
	report := upgradeReport{Program: p.Path, Version: version, From: p.Origin.Name, Upgrade: p.Origin.Upgrade}
	_, err := os.Stat(program.StablePath())
	if err == nil && p.Lasting() == "" {
		settled, err := program.Settle(ctx, thisVersion(), force, false)
		if err != nil {
			return err
		}
		report.Program, report.Did = settled.Path, settled.Did
		switch settled.Did {
		case program.Replaced:
			report.Was = settled.Was.Version
		case program.Kept:
			report.Version = settled.Was.Version
		}
		noteSettled(o, settled)
	}
	return printRow(o, report, "toolcell %s at %s, from %s. To upgrade:\n%s\n",
		report.Version, report.Program, report.From, report.Upgrade)
}

// settleProgram returns the path by which clients start this program, after it was copied
// there if need be.
func settleProgram(ctx context.Context, o Options, force, dry bool) (string, error) {
	settled, err := program.Settle(ctx, thisVersion(), force, dry)
	if err != nil {
		return "", err
	}
	if !dry {
		noteSettled(o, settled)
	}
	return settled.Path, nil
}

// newerPrograms returns, by client, the programs that entries start now and that are newer than
// this one: they stay unless the user forces it. Of the copy that clients start, Settle says so.
// Programs are started to ask them, so files of projects are left out: others may have written them.
func newerPrograms(ctx context.Context, o installOptions, clients []string) map[string]string {
	newer := map[string]string{}
	if o.Print || o.change.Force || o.change.Project {
		return newer
	}
	for _, client := range clients {
		change := o.change
		change.Client = client
		i, err := installer.New(change)
		if err != nil {
			continue // installing says so
		}
		path := i.Starts()
		if path == "" || newer[client] != "" || sameProgram(path, program.This().Started()) {
			continue
		}
		there, err := program.VersionOf(ctx, path)
		if err != nil || !there.NewerThan(thisVersion()) {
			continue
		}
		newer[client] = path
		console.Note(o.Err, fmt.Sprintf("%s still starts %s: it is toolcell %s, and this is %s, which is older; to have it start this one, add --force",
			i.Title(), text.ShellWord(path), there, thisVersion()))
	}
	return newer
}

// noteSettled says what was done with the program.
func noteSettled(o Options, s program.Settled) {
	path := text.ShellWord(s.Path)
	switch s.Did {
	case program.Placed:
		note := fmt.Sprintf("the program is at %s now, where clients start it", path)
		if runner := program.This().Origin.Runner(); runner != "" {
			note += fmt.Sprintf("; where messages say toolcell, type %s toolcell", runner)
		}
		console.Note(o.Err, note)
	case program.Replaced:
		was := "was " + s.Was.String()
		if s.Was == (program.Version{}) {
			was = "was one that did not say its version"
		}
		console.Note(o.Err, fmt.Sprintf("%s is toolcell %s now, and %s; clients start it the next time that they start toolcell", path, thisVersion(), was))
	case program.Kept:
		console.Note(o.Err, fmt.Sprintf("%s stays: it is toolcell %s, and this is %s, which is older; to replace it nevertheless, add --force", path, s.Was, thisVersion()))
	}
}
