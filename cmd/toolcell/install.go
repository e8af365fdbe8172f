package main

import (
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/urfave/cli/v2"
)

func installCommand(s *console.Streams) *cli.Command {
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "list", Usage: "show the clients that are known, their files, and which have toolcell"},
		&cli.BoolFlag{Name: "json", Usage: "print the list as JSON"},
		&cli.BoolFlag{Name: "project", Usage: "the client's file in this project instead of yours"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the entry (default: toolcell)"},
		&cli.StringSliceFlag{Name: "env", Usage: "`KEY=VALUE` that the client is to start toolcell with, such as MCP_BRIDGE_IMAGE=python:3.13; may be repeated"},
		&cli.BoolFlag{Name: "move-servers", Usage: "move the client's other servers behind toolcell, which saves their tokens"},
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "move them without asking"},
		&cli.BoolFlag{Name: "print", Usage: "only print the entry, to be put in by hand"},
		&cli.BoolFlag{Name: "dry-run", Usage: "only show what would change"},
		&cli.BoolFlag{Name: "undo", Usage: "take the entry out again, and put back what was moved"},
	}
	return &cli.Command{
		Name: "install", Usage: "put toolcell into the config of an MCP client", ArgsUsage: "CLIENT",
		Description: "Clients: " + strings.Join(installer.ClientNames(), ", ") + ".\n\n" +
			"The file keeps its comments, order and form; what it was before is kept beside it. A file that\n" +
			"cannot be read is left alone.",
		Flags: append(flags, settings.Flags(discoverySettings...)...), OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			switch {
			case c.Bool("undo"):
				return uninstall(c, s)
			case c.Bool("list"):
				return listClients(c, s)
			}
			i, err := openInstaller(c, s)
			if err != nil {
				return err
			}
			if c.Bool("print") {
				return i.PrintEntry()
			}
			return i.Install(c.Context)
		},
	}
}

func uninstallCommand(s *console.Streams) *cli.Command {
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "project", Usage: "the client's file in this project instead of yours"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the entry, if there are several"},
		&cli.BoolFlag{Name: "dry-run", Usage: "only show what would change"},
	}
	return &cli.Command{
		Name: "uninstall", Usage: "take toolcell out of the config of an MCP client, and put back what was moved", ArgsUsage: "CLIENT",
		Flags: append(flags, settings.Flags(discoverySettings...)...), OnUsageError: usageError,
		Action: func(c *cli.Context) error { return uninstall(c, s) },
	}
}

// uninstall is also the action of install --undo.
func uninstall(c *cli.Context, s *console.Streams) error {
	i, err := openInstaller(c, s)
	if err != nil {
		return err
	}
	return i.Uninstall()
}

// openInstaller opens the file that the command line means.
func openInstaller(c *cli.Context, s *console.Streams) (*installer.Installer, error) {
	if c.NArg() != 1 {
		return nil, console.Usagef("%s takes one client: %s", c.Command.Name, strings.Join(installer.ClientNames(), ", "))
	}
	conf, err := settings.Read(c)
	if err != nil {
		return nil, err
	}
	log := newLogger(conf, s.Err)
	found, err := discoverServers(conf, log)
	if err != nil {
		return nil, err
	}
	return installer.New(installer.Options{
		Client: c.Args().First(), Project: c.Bool("project"), Name: c.String("name"), Env: c.StringSlice("env"),
		MoveServers: c.Bool("move-servers"), Yes: c.Bool("yes"), DryRun: c.Bool("dry-run"),
		Streams: s, Settings: conf, Discovery: found.options, Config: found.config, Values: found.values, Log: log, Version: version,
	})
}

func listClients(c *cli.Context, s *console.Streams) error {
	conf, err := settings.Read(c)
	if err != nil {
		return err
	}
	found, err := discoverServers(conf, newLogger(conf, s.Err))
	if err != nil {
		return err
	}
	rows := installer.Clients(found.options)
	if c.Bool("json") {
		return console.PrintJSON(s.Out, rows)
	}
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{r.Client, strings.TrimSuffix(r.Status+": "+r.Error, ": "), strconv.Itoa(r.Servers), r.File})
	}
	return console.PrintTable(s.Out, []console.Column{{Name: "CLIENT"}, {Name: "STATUS"}, {Name: "OTHER SERVERS", Right: true}, {Name: "FILE", End: true}}, cells)
}
