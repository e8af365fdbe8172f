package main

import (
	"fmt"
	"runtime"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/urfave/cli/v2"
)

func versionCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name:         "version",
		Usage:        "print the version",
		Flags:        []cli.Flag{jsonFlag()},
		OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return console.Usagef("version takes no arguments, got %q", c.Args().First())
			}
			if c.Bool("json") {
				return console.PrintJSON(s.Out, []map[string]string{
					{"version": version, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH},
				})
			}
			_, err := fmt.Fprintf(s.Out, "toolcell %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
