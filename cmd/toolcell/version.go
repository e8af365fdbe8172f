package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/releases"
	"github.com/toolcell/toolcell/internal/program"
)

// version is the newest release in CHANGELOG.md, or with -dev the one that comes next.
const version = "0.1.0"

// Set by the linker: the commit, with -dirty after it if files were changed, and its date.
var commit, date string

func versionCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "ask the place that toolcell came from (PyPI, npm or GitHub) for a newer version"},
			jsonFlag(),
		},
		Action: actionWith(s, func(c *cli.Context, o Options) error {
			row := map[string]string{
				"version": version, "commit": commit, "date": date, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			}
			if c.Bool("check") {
				return checkVersion(c.Context, o, row)
			}
			return printRow(o, row, "%s", versionText())
		}),
	}
}

// checkVersion says whether there is a newer version, and how to get it.
func checkVersion(ctx context.Context, o Options, row map[string]string) error {
	from := program.This().Origin
	newest, host, err := releases.User().Newest(ctx, from.Registry)
	if err != nil {
		return err
	}
	row["newest"], row["registry"], row["upgrade"] = newest, host, ""
	if !(program.Version{Version: newest}).NewerThan(program.Version{Version: version}) {
		return printRow(o, row, "%s%s has no newer version\n", versionText(), host)
	}
	row["upgrade"] = from.Upgrade
	return printRow(o, row, "%s%s has %s; to upgrade, type:\n%s\n", versionText(), host, newest, from.Upgrade)
}

// thisVersion returns the version of this program.
func thisVersion() program.Version { return program.Version{Version: version, Date: date} }

// versionText returns the version, and the commit that it was built from if that is known.
func versionText() string {
	if commit == "" {
		return "toolcell " + version + "\n"
	}
	return fmt.Sprintf("toolcell %s (%s, %s)\n", version, commit, date)
}
