package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

func serversCommand(s *console.Streams) *cli.Command {
	command := func(name, usage, args string, do serversFunc, more ...string) *cli.Command {
		return command(name, usage, args, slices.Concat(discoverySettings, more), action(s, do.run))
	}
	pinsCommand := command("pins", "show how tools have changed since they were first used, and accept changes", "[NAME…] | accept NAME [TOOL]", serversPins, settings.ForRecord...)
	pinsCommand.Description = pinsDescription
	return group("servers", "list, check and call your MCP servers",
		command("list", "list the servers that were found, with any problems", "", serversList, "policy"),
		command("check", "start servers and report any problems", "[NAME…]", serversCheck, "start-timeout"),
		command("tools", "start servers and list their tools", "[NAME…]", serversTools, "start-timeout"),
		pinsCommand,
		serversLoginCommand(s), serversLogoutCommand(s),
		command("search", "search the tools of all servers", "QUERY", serversSearch, "start-timeout"),
		serversCallCommand(s), serversTrustCommand(s), serversUntrustCommand(s), serversSetCommand(s),
		serversSandboxCommand(s), serversUpdateCommand(s),
	)
}

// A serversFunc does the work of a command with the user's servers.
type serversFunc func(context.Context, Options, *mcpproxy.Proxy) error

// run finds the servers, calls do, and ends the servers that it has started.
func (do serversFunc) run(ctx context.Context, o Options) (err error) {
	log := shellLogger(o)
	found, err := askForServers(ctx, o, log, o.Args)
	if err != nil {
		return err
	}
	p := openProxy(found.config, o.Settings, log)
	defer func() { err = errors.Join(err, p.Close()) }()
	return forShell(do(ctx, o, p.Proxy))
}

// forShell makes the error about an unknown server name the command that lists servers.
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

func serversList(_ context.Context, o Options, p *mcpproxy.Proxy) error {
	all := p.Servers()
	printUnread(o.Err, p.Problems())
	for _, typo := range policyTypos(o.Settings, all) {
		console.Note(o.Err, typo)
	}
	columns := []console.Column{
		{Name: "NAME"},
		{Name: "STATUS", Color: console.ColorsFor(o.Out).Status},
		{Name: "TRANSPORT"},
		{Name: "SOURCE", End: true},
		{Name: "REMARK", Wrap: true},
	}
	return printRows(o, all, noServers, noServersNext, columns, func(st mcpproxy.ServerStatus) []string {
		return []string{st.Name, st.Status, transportOf(st), st.Source, remark(st)}
	})
}

// transportOf returns how a server is reached, and that it is in a sandbox.
func transportOf(st mcpproxy.ServerStatus) string {
	if st.Where == mcpproxy.InSandbox {
		return string(st.Transport) + ", sandboxed"
	}
	return string(st.Transport)
}

// The message if there are no servers, and what to do then.
const (
	noServers     = "no servers were found"
	noServersNext = `put one into ~/MCPs/NAME.json: {"mcpServers": {"NAME": {"command": "…", "args": []}}}`
)

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

// printUnread names the files that cannot be read. The remark of a server has its error.
func printUnread(w *os.File, problems []config.Problem) {
	for _, p := range problems {
		if p.Server == "" {
			console.Plainly(w, p.String())
		}
	}
}
