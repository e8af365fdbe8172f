package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/urfave/cli/v2"
)

func serversCommand(s *console.Streams) *cli.Command {
	command := func(name, usage, args string, action func(*cli.Context, *mcpproxy.Proxy) error, more ...string) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: args, OnUsageError: usageError,
			Flags: append([]cli.Flag{jsonFlag()}, settings.Flags(slices.Concat(discoverySettings, more)...)...),
			Action: func(c *cli.Context) error {
				if name == "list" && c.Args().Present() {
					return console.Usagef("servers list takes no arguments, got %q; to look at one server: toolcell servers check NAME", c.Args().First())
				}
				return withProxy(c, s, action)
			},
		}
	}
	pinsCommand := command("pins", "show how tools have changed since they were first used, and accept it", "[NAME…] | accept NAME [TOOL]",
		func(c *cli.Context, p *mcpproxy.Proxy) error { return serversPins(c, s, p) })
	pinsCommand.Description = pinsDescription
	return &cli.Command{
		Name:         "servers",
		Usage:        "list, check and call your MCP servers",
		OnUsageError: usageError,
		Subcommands: []*cli.Command{
			command("list", "list the servers that were found, and what is wrong with any", "",
				func(c *cli.Context, p *mcpproxy.Proxy) error { return serversList(c, s, p) }, "policy"),
			command("check", "start servers and report what is wrong with any", "[NAME…]",
				func(c *cli.Context, p *mcpproxy.Proxy) error { return serversCheck(c, s, p) }, "start-timeout"),
			command("tools", "start servers and list their tools", "[NAME…]",
				func(c *cli.Context, p *mcpproxy.Proxy) error { return serversTools(c, s, p) }, "start-timeout"),
			pinsCommand,
			serversLoginCommand(s), serversLogoutCommand(s),
			command("search", "search the tools of all servers", "QUERY",
				func(c *cli.Context, p *mcpproxy.Proxy) error { return serversSearch(c, s, p) }, "start-timeout"),
			callFlags(command("call", "call a tool and print its value", "NAME TOOL [ARGUMENTS | NAME=VALUE… | - | @FILE]",
				func(c *cli.Context, p *mcpproxy.Proxy) error { return serversCall(c, s, p) }, "policy", "start-timeout")),
			serversTrustCommand(s), serversUntrustCommand(s), serversSetCommand(s),
		},
		Action: needSubcommand,
	}
}

// withProxy runs action on the user's servers and ends them again.
func withProxy(c *cli.Context, s *console.Streams, action func(*cli.Context, *mcpproxy.Proxy) error) (err error) {
	conf, err := settings.Read(c)
	if err != nil {
		return err
	}
	log := shellLogger(c, conf, s.Err)
	found, err := discoverForShell(conf, log)
	if err != nil {
		return err
	}
	if err := found.askTrust(c.Context, s); err != nil {
		return err
	}
	warnOfSlips(log)
	if name := c.Command.Name; name != "list" && name != "check" { // which say it themselves
		found.noteProblems(c, s, c.Args().Slice())
	}
	p := mcpproxy.New(found.config, mcpproxy.Options{
		Log: log, ClientVersion: version, StartTimeout: conf.StartTimeout, TokenDir: conf.TokenDir(), CatalogDir: conf.CatalogDir(), PinDir: conf.PinDir(),
	})
	defer func() { err = errors.Join(err, p.Close()) }()
	return forShell(action(c, p))
}

// forShell makes the error about a name that no server has say where a shell lists them.
func forShell(err error) error {
	var unknown *mcpproxy.UnknownServerError
	var done *shellError
	if !errors.As(err, &unknown) || errors.As(err, &done) {
		return err
	}
	return &shellError{strings.Replace(err.Error(), unknown.Error(), unknown.Describe("toolcell servers list"), 1), err}
}

// A shellError is an error in the words of the shell.
type shellError struct {
	text string
	err  error
}

func (e *shellError) Error() string { return e.text }
func (e *shellError) Unwrap() error { return e.err }

func serversList(c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	all := p.Servers()
	printUnread(s.Err, p.Problems())
	printPolicySlips(c, s.Err, all)
	if c.Bool("json") {
		return console.PrintJSON(s, all)
	}
	if len(all) == 0 {
		noServers(s)
		return nil
	}
	var rows [][]string
	for _, st := range all {
		rows = append(rows, []string{st.Name, st.Status, string(st.Transport), st.Source, remark(st)})
	}
	return console.PrintTable(s.Out, []console.Column{
		{Name: "NAME"},
		{Name: "STATUS", Color: console.ColorsFor(s.Out).Status},
		{Name: "TRANSPORT"},
		{Name: "SOURCE", End: true},
		{Name: "REMARK", Wrap: true},
	}, rows)
}

func noServers(s *console.Streams) {
	printNone(s, "no servers were found", `put one into ~/MCPs/NAME.json: {"mcpServers": {"NAME": {"command": "…", "args": []}}}`)
}

// remark returns a one-line remark about a server.
func remark(st mcpproxy.ServerStatus) string {
	if st.Error != "" {
		return st.Error
	}
	if len(st.Also) > 0 {
		return "also in " + strings.Join(st.Also, ", ")
	}
	return ""
}

// printUnread names the files that cannot be read. What is wrong with a server, and
// what to type, is in its remark.
func printUnread(w *os.File, problems []config.Problem) {
	for _, p := range problems {
		if p.Server == "" {
			console.Plainly(w, p.String())
		}
	}
}
