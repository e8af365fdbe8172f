package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/runcell/runcell/rootfs"
	"github.com/urfave/cli/v2"
)

func imagesCommand(s *streams) *cli.Command {
	stateDir := settingFlags("state-dir")
	return &cli.Command{
		Name:         "images",
		Usage:        "pull and list images",
		OnUsageError: usageError,
		Subcommands: []*cli.Command{
			{
				Name: "pull", Usage: "fetch an image and unpack it, asking the registry even if its tag is here",
				ArgsUsage: "REF", Flags: stateDir, OnUsageError: usageError,
				Action: func(c *cli.Context) error { return imagesPull(c, s) },
			},
			{
				Name: "list", Aliases: []string{"ls"}, Usage: "show what is here",
				Flags: append(slices.Clone(stateDir), jsonFlag()), OnUsageError: usageError,
				Action: func(c *cli.Context) error { return imagesList(c, s) },
			},
		},
		Action: needSubcommand,
	}
}

func jsonFlag() cli.Flag {
	return &cli.BoolFlag{Name: "json", Usage: "print one JSON array of objects"}
}

// needSubcommand is the action of a command that does nothing by itself.
func needSubcommand(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("%s has no command %q", c.Command.Name, c.Args().First())
	}
	return cli.ShowSubcommandHelp(c)
}

func imagesPull(c *cli.Context, s *streams) error {
	if c.NArg() != 1 {
		return usagef("images pull takes one reference, such as %s", defaultImage)
	}
	store, err := imageStore(c)
	if err != nil {
		return err
	}
	start := time.Now()
	show := pullProgress(s.err)
	root, err := store.Pull(c.Context, c.Args().First(), func(p rootfs.Progress) { show(p.Done, p.Total, p.Text) })
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s %s (%s)\n", root.Ref, root.Digest, time.Since(start).Round(time.Millisecond))
	return nil
}

func imagesList(c *cli.Context, s *streams) error {
	store, err := imageStore(c)
	if err != nil {
		return err
	}
	entries, err := store.List()
	if err != nil {
		return err
	}
	if c.Bool("json") {
		return printJSON(s.out, entries)
	}
	return printTable(s.out, "IMAGE\tDIGEST\tSIZE\tPULLED\tLAST USED", func(w io.Writer) {
		for _, e := range entries {
			fmt.Fprintf(w, "%s\t%.19s\t%.1f MB\t%s\t%s\n", e.Ref, e.Digest, float64(e.Size)/1e6,
				e.Created.Local().Format(time.DateTime), e.LastUsed.Local().Format(time.DateTime))
		}
	})
}

func imageStore(c *cli.Context) (*rootfs.Store, error) {
	d, err := findDirs(c.String("state-dir"))
	if err != nil {
		return nil, err
	}
	return openStore(d)
}

// printJSON prints a list; an empty one is [], not null.
func printJSON[T any](w io.Writer, list []T) error {
	if list == nil {
		list = []T{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(list)
}

// printTable prints rows of tab-separated cells under a head.
func printTable(w io.Writer, head string, rows func(io.Writer)) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, head)
	rows(t)
	return t.Flush()
}
