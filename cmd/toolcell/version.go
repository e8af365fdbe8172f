package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// version is the newest release in CHANGELOG.md, or with -dev the one that comes next.
const version = "0.1.0"

// Set by the linker: the commit, with -dirty after it if files were changed, and its date.
var commit, date string

func versionCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version",
		Flags: []cli.Flag{jsonFlag()},
		Action: action(s, func(_ context.Context, o Options) error {
			row := map[string]string{
				"version": version, "commit": commit, "date": date, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH,
			}
			return printRow(o, row, "%s", versionText())
		}),
	}
}

// versionText returns the version, and the commit that it was built from if that is known.
func versionText() string {
	if commit == "" {
		return "toolcell " + version + "\n"
	}
	return fmt.Sprintf("toolcell %s (%s, %s)\n", version, commit, date)
}
