package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// sandboxSettings are those of commands that start servers in sandboxes, whatever the policy says.
var sandboxSettings = append(append([]string{}, discoverySettings...), "policy", "start-timeout", "image")

type serversUpdateOptions struct {
	Options
	Yes bool
}

func serversUpdateCommand(s *console.Streams) *cli.Command {
	return &cli.Command{
		Name: "update", Usage: "choose newer packages for servers in sandboxes", ArgsUsage: "NAME…",
		Description: "The versions of the packages that a server's command names are chosen at its first start, and stay.\n" +
			"This chooses them anew, shows what differs and asks. The server has them from its next start on.",
		Flags: flags(sandboxSettings, jsonFlag(), &cli.BoolFlag{Name: "yes", Usage: "accept the new versions without a question"}),
		Action: actionWith(s, func(c *cli.Context, o Options) error {
			return serversUpdateOptions{o, c.Bool("yes")}.run(c.Context)
		}),
	}
}

// An updatedServer is a row of servers update.
type updatedServer struct {
	Server  string             `json:"server"`
	Changes []sandboxes.Change `json:"changes"`
	Scripts []string           `json:"scripts,omitempty"` // packages with install scripts
	Updated bool               `json:"updated"`
}

func (o serversUpdateOptions) run(ctx context.Context) (err error) {
	log := shellLogger(o.Options)
	found, err := discoverForShell(o.Options, log)
	if err != nil {
		return err
	}
	l := launcherFor(o.Settings, log)
	defer func() { err = errors.Join(err, l.Close()) }()
	return eachArgument(ctx, o.Options, func(name string) (*updatedServer, string, error) {
		row, said, err := o.update(ctx, l, found.config, name)
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("updating %q: %w", text.Printable(name, 200), err)
		}
		return row, said, err
	})
}

// update updates a server, if the user wants that.
func (o serversUpdateOptions) update(ctx context.Context, l *serverLauncher, all config.Config, name string) (*updatedServer, string, error) {
	progress := console.NewProgress(o.Err, o.JSON)
	progress.Show("choosing versions for " + text.Visible(name))
	server, err := findServer(all, name)
	var update *sandboxes.Update
	if err == nil {
		update, err = l.update(ctx, server)
	}
	progress.Close()
	if err != nil {
		return nil, "", err
	}
	name = server.Name // it may have been the alias
	row := &updatedServer{Server: name, Changes: append([]sandboxes.Change{}, update.Changes...), Scripts: update.Scripts}
	if len(row.Changes) == 0 {
		return row, fmt.Sprintf("%s: nothing newer\n", text.Visible(name)), nil
	}
	if !o.JSON {
		fmt.Fprint(o.Stdout(), row.describe())
	}
	if !o.Yes {
		if err := confirm(ctx, o.Options, fmt.Sprintf("Start %s with these from now on?", text.Visible(name)), "nothing was changed"); err != nil {
			return row, "", err
		}
	}
	if err := update.Accept(ctx); err != nil {
		return row, "", err
	}
	row.Updated = true
	return row, fmt.Sprintf("%s: updated, from its next start on\n", text.Visible(name)), nil
}

// update finds other versions of the packages of a server that runs in a sandbox.
func (l *serverLauncher) update(ctx context.Context, server config.Server) (*sandboxes.Update, error) {
	box, err := l.box(server)
	if err != nil {
		return nil, err
	}
	if server.Transport != config.Stdio || !box.On(server.Project) {
		return nil, errors.New("it does not run in a sandbox, so toolcell does not choose its packages; to try it in one: toolcell servers sandbox " + text.ShellWord(server.Name))
	}
	if err := l.rights.Allowed(server, box); err != nil {
		return nil, err
	}
	parts, err := l.open()
	if err != nil {
		return nil, err
	}
	return parts.servers.Update(ctx, server, box)
}

// describe says how the versions differ. Names and versions are of a registry.
func (row *updatedServer) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n", text.Visible(row.Server))
	for _, c := range row.Changes {
		name, was, now := console.OneLine(c.Name, 214), console.OneLine(c.Old, 100), console.OneLine(c.New, 100)
		switch {
		case c.Old == "":
			fmt.Fprintf(&b, "  + %s %s\n", name, now)
		case c.New == "":
			fmt.Fprintf(&b, "  - %s %s\n", name, was)
		case c.Old == c.New:
			fmt.Fprintf(&b, "  %s %s, with other files\n", name, now)
		default:
			fmt.Fprintf(&b, "  %s %s → %s\n", name, was, now)
		}
	}
	if len(row.Scripts) > 0 {
		fmt.Fprintf(&b, "  with install scripts: %s\n", console.OneLine(strings.Join(row.Scripts, ", "), 1000))
	}
	return b.String()
}

// findServer finds a server by its name or its alias, as all commands do.
func findServer(all config.Config, nameOrAlias string) (config.Server, error) {
	p := mcpproxy.New(all, mcpproxy.Options{})
	defer p.Close()
	server, err := p.Lookup(nameOrAlias)
	return server, forShell(err)
}
