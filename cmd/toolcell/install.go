package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// installOptions are those of install and uninstall.
type installOptions struct {
	Options
	change installer.Options // but for the client

	All, List, Undo, Print bool
	Ask                    bool // which clients: the command line says nothing of them
}

func installCommand(s *console.Streams) *cli.Command {
	own := []cli.Flag{
		&cli.BoolFlag{Name: "all", Usage: "all clients that are found on this machine"},
		&cli.BoolFlag{Name: "list", Usage: "list all known clients, their files, and which have toolcell"},
		jsonFlag(),
		&cli.BoolFlag{Name: "project", Usage: "change the client's file in this project instead of your own"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the entry (default: toolcell)"},
		&cli.StringSliceFlag{Name: "env", Usage: "`KEY=VALUE` for the environment that the client starts toolcell with, such as TOOLCELL_IMAGE=python:3.13; may be repeated"},
		&cli.BoolFlag{Name: "move-servers", Usage: "move the client's other servers behind toolcell, which saves their tokens"},
		&cli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "move them without asking"},
		&cli.BoolFlag{Name: "print", Usage: "only print the entry, for you to add by hand"},
		&cli.BoolFlag{Name: "dry-run", Usage: "only show what would change"},
		&cli.BoolFlag{Name: "force", Usage: "change a file even if it is read-only, and replace a newer program"},
		&cli.BoolFlag{Name: "undo", Usage: "remove the entry, and move servers back"},
	}
	return &cli.Command{
		Name: "install", Usage: "add toolcell to the config of MCP clients", ArgsUsage: "[CLIENT…]",
		Description: "Without a client it shows those that are found on this machine, and asks you to choose. Clients: " +
			strings.Join(installer.ClientNames(), ", ") + ".\n\n" +
			"The file keeps its comments, order and form, and a backup is kept beside it. A file that cannot\n" +
			"be read is left alone. A program that runs from a cache, such as uvx's, is copied to\n" +
			"~/.local/share/toolcell/bin first, where clients start it.",
		Flags: flags(discoverySettings, own...), Action: actionWith(s, withClients(install)),
	}
}

func uninstallCommand(s *console.Streams) *cli.Command {
	own := []cli.Flag{
		&cli.BoolFlag{Name: "all", Usage: "all clients that have toolcell"},
		jsonFlag(),
		&cli.BoolFlag{Name: "project", Usage: "change the client's file in this project instead of your own"},
		&cli.StringFlag{Name: "name", Usage: "`NAME` of the entry, if there are several"},
		&cli.BoolFlag{Name: "dry-run", Usage: "only show what would change"},
		&cli.BoolFlag{Name: "force", Usage: "change a file even if it is read-only"},
	}
	return &cli.Command{
		Name: "uninstall", Usage: "remove toolcell from the config of MCP clients, and move servers back", ArgsUsage: "[CLIENT…]",
		Flags: flags(discoverySettings, own...), Action: actionWith(s, withClients(uninstall)),
	}
}

// withClients reads the options of install and uninstall.
func withClients(do func(context.Context, installOptions) error) func(*cli.Context, Options) error {
	return func(c *cli.Context, o Options) error {
		found := discoverServers(o.Settings, shellLogger(o))
		named := slices.ContainsFunc([]string{"all", "print", "dry-run", "move-servers", "name", "env", "project"}, c.IsSet)
		return do(c.Context, installOptions{
			Options: o, All: c.Bool("all"), List: c.Bool("list"), Undo: c.Bool("undo"), Print: c.Bool("print"), Ask: len(o.Args) == 0 && !named,
			change: installOptionsOf(c, o, found),
		})
	}
}

// installOptionsOf returns the options of a change of clients' files. Flags that the command does not
// have are not set.
func installOptionsOf(c *cli.Context, o Options, found *discovered) installer.Options {
	return installer.Options{
		Project: c.Bool("project"), Name: c.String("name"), Env: c.StringSlice("env"), MoveServers: c.Bool("move-servers"),
		Yes: c.Bool("yes"), DryRun: c.Bool("dry-run"), Force: c.Bool("force"), JSON: o.JSON,
		Streams: o.Streams, Settings: o.Settings, Discovery: found.options, Config: found.config, Values: found.values,
		Log: found.log, Version: version,
		Servers: func(cfg config.Config) (*mcpproxy.Proxy, func() error) {
			p := openProxy(cfg, o.Settings, found.log)
			return p.Proxy, p.Close
		},
	}
}

func install(ctx context.Context, o installOptions) error {
	switch {
	case o.Undo:
		return uninstall(ctx, o)
	case o.List:
		return printClients(o, installer.Clients(o.change.Discovery))
	case o.Ask:
		return installInFound(ctx, o)
	case o.All && o.change.Project:
		return console.Usagef("--all is for your own files; name the clients of the project")
	}
	clients, err := o.clients(func() ([]string, error) { return installer.Detected(o.change.Discovery) })
	if err != nil {
		return err
	}
	return installIn(ctx, o, clients)
}

// installIn installs in clients, or prints their entries.
func installIn(ctx context.Context, o installOptions, clients []string) (err error) {
	newer := newerPrograms(ctx, o, clients)
	if slices.ContainsFunc(clients, func(client string) bool { return newer[client] == "" }) {
		if o.change.Program, err = settleProgram(ctx, o.Options, o.change.Force, o.change.DryRun); err != nil {
			return err
		}
	}
	err = doForClients(ctx, o, clients, func(i *installer.Installer) (*installer.Report, error) {
		if o.Print {
			return i.PrintEntry()
		}
		if path := newer[i.Client]; path != "" {
			i.Program = path
		}
		return i.Install(ctx)
	})
	if err != nil {
		return err
	}
	return askForProject(ctx, o)
}

// uninstall is also what install --undo does.
func uninstall(ctx context.Context, o installOptions) error {
	clients, err := o.clients(func() ([]string, error) {
		clients, others, err := installer.Installed(o.change.Discovery, o.Settings)
		slices.Sort(others)
		for _, file := range others {
			fmt.Fprintf(o.Err, "toolcell: note: %s was changed too: take toolcell out of it with --project, in that folder\n", file)
		}
		if err == nil && len(clients) == 0 && !o.JSON {
			fmt.Fprintln(o.Stdout(), "nothing to do: no client has toolcell in its config")
		}
		return clients, err
	})
	if err != nil {
		return err
	}
	return doForClients(ctx, o, clients, (*installer.Installer).Uninstall)
}

// doForClients does something for clients. One that fails does not keep it from the others.
func doForClients(ctx context.Context, o installOptions, clients []string, do func(*installer.Installer) (*installer.Report, error)) error {
	var reports []*installer.Report
	failed := 0
	for n, client := range clients {
		if slices.Contains(clients[:n], client) || ctx.Err() != nil {
			continue
		}
		done, err := forClient(o.change, client, do)
		reports = append(reports, done...)
		if err != nil {
			var exit *console.ExitError
			if len(clients) == 1 && !o.JSON || errors.As(err, &exit) && exit.Code == console.ExitUsage {
				return err
			}
			failed++
			reports = append(reports, &installer.Report{Client: client, Status: "failed", Error: err.Error()})
			if !o.JSON {
				console.Error(o.Err, err.Error())
			}
		}
	}
	if o.JSON {
		if err := console.PrintJSON(o.Streams, reports); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &console.ExitError{Code: console.ExitFail} // what failed is printed already
	}
	return nil
}

// clients returns the clients that the command line names, or with --all those that all
// returns. If a name is unknown it returns an error, so that nothing changes.
func (o installOptions) clients(all func() ([]string, error)) ([]string, error) {
	switch {
	case o.All && len(o.Args) > 0:
		return nil, console.Usagef("--all means every client: leave out %s", strings.Join(o.Args, " "))
	case o.All:
		return all()
	case len(o.Args) == 0:
		return nil, console.Usagef("%s needs a client, or --all: %s", o.Command, strings.Join(installer.ClientNames(), ", "))
	}
	return o.Args, installer.Check(o.change, o.Args...)
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

// installInFound shows the clients on this machine, and asks which of them are to
// get toolcell. Without a terminal it says how to name them.
func installInFound(ctx context.Context, o installOptions) error {
	found := slices.DeleteFunc(installer.Clients(o.change.Discovery), func(r installer.Client) bool { return !r.Found })
	if len(found) == 0 && !o.JSON {
		return console.Invalidf("no MCP client was found on this machine; name one: %s", strings.Join(installer.ClientNames(), ", "))
	}
	if err := printClients(o, found); err != nil || o.JSON {
		return err
	}
	var without, crowded []string
	for _, r := range found {
		if r.Status != "installed" && r.Status != "unreadable" {
			without = append(without, r.Client)
		}
		if r.Status == "installed" && r.Servers > 0 {
			crowded = append(crowded, r.Client)
		}
	}
	if len(crowded) > 0 {
		fmt.Fprintf(o.Stdout(), "\nTo save the tokens of other servers, type: toolcell install %s --move-servers --dry-run\n", strings.Join(crowded, " "))
	}
	if len(without) == 0 {
		return nil
	}
	if !console.Terminal(o.In) || !console.Terminal(o.Err) {
		return console.Invalidf("name the clients that are to get toolcell: toolcell install %s, or toolcell install --all", strings.Join(without, " "))
	}
	clients, err := askClients(ctx, o, without)
	if err != nil {
		return err
	}
	return installIn(ctx, o, clients)
}

// askClients asks which clients are meant until the answer has only known names.
func askClients(ctx context.Context, o installOptions, without []string) ([]string, error) {
	for {
		fmt.Fprintf(o.Err, "\nPut toolcell into which? Type names (%s), or all; Enter for none: ", strings.Join(without, ", "))
		answer, err := console.ReadLine(ctx, o.In)
		names := strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
		if err != nil || len(names) == 0 {
			return nil, &console.ExitError{Code: console.ExitFail, Err: fmt.Errorf("nothing was changed")}
		}
		if slices.Contains(names, "all") {
			return without, nil
		}
		err = installer.Check(o.change, names...)
		if err == nil {
			return names, nil
		}
		fmt.Fprintf(o.Err, "%s\n", console.Shown(o.Err, err.Error()))
	}
}

func printClients(o installOptions, rows []installer.Client) error {
	columns := []console.Column{{Name: "CLIENT"}, {Name: "STATUS"}, {Name: "OTHER SERVERS", Right: true}, {Name: "FILE", End: true}}
	return printRows(o.Options, rows, "", "", columns, func(r installer.Client) []string { // there are always some
		return []string{r.Client, strings.TrimSuffix(r.Status+": "+r.Error, ": "), strconv.Itoa(r.Servers), r.File}
	})
}
