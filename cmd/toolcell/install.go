package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/urfave/cli/v2"
)

func installCommand(s *console.Streams) *cli.Command {
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "all", Usage: "all clients that are found on this machine"},
		&cli.BoolFlag{Name: "list", Usage: "show all clients that are known, their files, and which have toolcell"},
		jsonFlag(),
		&cli.BoolFlag{Name: "project", Usage: "the client's file in this project instead of yours"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the entry (default: toolcell)"},
		&cli.StringSliceFlag{Name: "env", Usage: "`KEY=VALUE` that the client is to start toolcell with, such as MCP_BRIDGE_IMAGE=python:3.13; may be repeated"},
		&cli.BoolFlag{Name: "move-servers", Usage: "move the client's other servers behind toolcell, which saves their tokens"},
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "move them without asking"},
		&cli.BoolFlag{Name: "print", Usage: "only print the entry, to be put in by hand"},
		&cli.BoolFlag{Name: "dry-run", Usage: "only show what would change"},
		&cli.BoolFlag{Name: "force", Usage: "change a file also if it is read-only"},
		&cli.BoolFlag{Name: "undo", Usage: "take the entry out again, and put back what was moved"},
	}
	return &cli.Command{
		Name: "install", Usage: "put toolcell into the config of MCP clients", ArgsUsage: "[CLIENT…]",
		Description: "Without a client it shows those that are found on this machine, and asks which. Clients: " +
			strings.Join(installer.ClientNames(), ", ") + ".\n\n" +
			"The file keeps its comments, order and form; what it was before is kept beside it. A file that\n" +
			"cannot be read is left alone.",
		Flags: append(flags, settings.Flags(discoverySettings...)...), OnUsageError: usageError,
		Action: func(c *cli.Context) error {
			switch {
			case c.Bool("undo"):
				return uninstall(c, s)
			case c.Bool("list"):
				return listClients(c, s)
			case c.NArg() == 0 && !c.Bool("all") && !slices.ContainsFunc([]string{"print", "dry-run", "move-servers", "name", "env", "project"}, c.IsSet):
				return installInFound(c, s)
			}
			return installAll(c, s)
		},
	}
}

func uninstallCommand(s *console.Streams) *cli.Command {
	flags := []cli.Flag{
		&cli.BoolFlag{Name: "all", Usage: "all clients that have toolcell"},
		jsonFlag(),
		&cli.BoolFlag{Name: "project", Usage: "the client's file in this project instead of yours"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the entry, if there are several"},
		&cli.BoolFlag{Name: "dry-run", Usage: "only show what would change"},
		&cli.BoolFlag{Name: "force", Usage: "change a file also if it is read-only"},
	}
	return &cli.Command{
		Name: "uninstall", Usage: "take toolcell out of the config of MCP clients, and put back what was moved", ArgsUsage: "[CLIENT…]",
		Flags: append(flags, settings.Flags(discoverySettings...)...), OnUsageError: usageError,
		Action: func(c *cli.Context) error { return uninstall(c, s) },
	}
}

func installAll(c *cli.Context, s *console.Streams) error {
	if c.Bool("all") && c.Bool("project") {
		return console.Usagef("--all is for your own files; name the clients of the project")
	}
	return eachClient(c, s, func(o installer.Options) ([]string, error) { return installer.Detected(o.Discovery) },
		func(i *installer.Installer) (*installer.Report, error) {
			if c.Bool("print") {
				return i.PrintEntry()
			}
			return i.Install(c.Context)
		})
}

// uninstall is also the action of install --undo.
func uninstall(c *cli.Context, s *console.Streams) error {
	installed := func(o installer.Options) ([]string, error) {
		clients, others, err := installer.Installed(o.Discovery, o.Settings)
		slices.Sort(others)
		for _, file := range others {
			fmt.Fprintf(s.Err, "toolcell: note: %s was changed too: take toolcell out of it with --project, in that folder\n", file)
		}
		if err == nil && len(clients) == 0 && !o.JSON {
			fmt.Fprintln(s.Stdout(), "nothing to do: toolcell is in the config of no client")
		}
		return clients, err
	}
	return eachClient(c, s, installed, (*installer.Installer).Uninstall)
}

// eachClient does something for the clients that the command line means, which
// all knows if it says --all. One that fails does not keep it from the others.
func eachClient(c *cli.Context, s *console.Streams, all func(installer.Options) ([]string, error), do func(*installer.Installer) (*installer.Report, error)) error {
	o, err := installOptions(c, s)
	if err != nil {
		return err
	}
	clients, err := clientsOf(c, o, all)
	if err != nil {
		return err
	}
	return doForClients(c, o, clients, do)
}

func doForClients(c *cli.Context, o installer.Options, clients []string, do func(*installer.Installer) (*installer.Report, error)) error {
	s := o.Streams
	var reports []*installer.Report
	failed := 0
	for n, client := range clients {
		if slices.Contains(clients[:n], client) || c.Context.Err() != nil {
			continue
		}
		done, err := forClient(o, client, do)
		reports = append(reports, done...)
		if err != nil {
			var exit *console.ExitError
			if len(clients) == 1 && !o.JSON || errors.As(err, &exit) && exit.Code == console.ExitUsage {
				return err
			}
			failed++
			reports = append(reports, installer.Failed(client, err))
			if !o.JSON {
				console.Error(s.Err, err.Error())
			}
		}
	}
	if o.JSON {
		if err := console.PrintJSON(s, reports); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &console.ExitError{Code: console.ExitFail} // what failed is printed already
	}
	return nil
}

// clientsOf returns the clients that the command line means. All of them are known:
// nothing is to be changed where a name is wrong.
func clientsOf(c *cli.Context, o installer.Options, all func(installer.Options) ([]string, error)) ([]string, error) {
	clients := c.Args().Slice()
	switch {
	case c.Bool("all") && len(clients) > 0:
		return nil, console.Usagef("--all means every client: leave out %s", strings.Join(clients, " "))
	case c.Bool("all"):
		return all(o)
	case len(clients) == 0:
		return nil, console.Usagef("%s needs a client, or --all: %s", c.Command.Name, strings.Join(installer.ClientNames(), ", "))
	}
	for _, client := range clients {
		if err := installer.Check(o, client); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// forClient does it for the client's file, and for its older one if there is one.
func forClient(o installer.Options, client string, do func(*installer.Installer) (*installer.Report, error)) (reports []*installer.Report, err error) {
	o.Client = client
	i, err := installer.New(o)
	for i != nil && err == nil {
		var report *installer.Report
		if report, err = do(i); report != nil {
			reports = append(reports, report)
		}
		if err == nil {
			i, err = i.Older()
		}
	}
	return reports, err
}

// installOptions are those of the command line, but for the client.
func installOptions(c *cli.Context, s *console.Streams) (o installer.Options, err error) {
	conf, err := settings.Read(c)
	if err != nil {
		return o, err
	}
	log := shellLogger(c, conf, s.Err)
	found, err := discoverServers(conf, log)
	if err != nil {
		return o, err
	}
	return installer.Options{
		Project: c.Bool("project"), Name: c.String("name"), Env: c.StringSlice("env"),
		MoveServers: c.Bool("move-servers"), Yes: c.Bool("yes"), DryRun: c.Bool("dry-run"), Force: c.Bool("force"), JSON: c.Bool("json"),
		Streams: s, Settings: conf, Discovery: found.options, Config: found.config, Values: found.values, Log: log, Version: version,
	}, nil
}
