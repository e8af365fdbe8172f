package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// Set by the linker: the version by tag, and the commit with its date.
var (
	version      = "devel"
	commit, date string
)

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

// versionText returns the version, and what it was built from if that is known.
func versionText() string {
	details := []string{commit, date, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	known := slices.DeleteFunc(details, func(d string) bool { return d == "" })
	return fmt.Sprintf("toolcell %s (%s)\n", version, strings.Join(known, ", "))
}
