package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/urfave/cli/v2"
)

func serversCommand(s *console.Streams) *cli.Command {
	command := func(name, usage, args string, action func(*cli.Context, *mcpproxy.Proxy) error) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: args, OnUsageError: usageError,
			Flags:  append([]cli.Flag{jsonFlag()}, settings.Flags()...),
			Action: func(c *cli.Context) error { return withProxy(c, s, action) },
		}
	}
	return &cli.Command{
		Name:         "servers",
		Usage:        "show the upstream MCP servers and their tools",
		OnUsageError: usageError,
		Subcommands: []*cli.Command{
			command("list", "show the servers that were found, where, and what is wrong with which", "",
				func(c *cli.Context, p *mcpproxy.Proxy) error { return serversList(c, s, p) }),
			command("check", "start servers and say what is wrong with which", "[NAME]…",
				func(c *cli.Context, p *mcpproxy.Proxy) error { return serversCheck(c, s, p) }),
			command("tools", "start servers and show their tools", "[NAME]…",
				func(c *cli.Context, p *mcpproxy.Proxy) error { return serversTools(c, s, p) }),
			serversLoginCommand(s), serversLogoutCommand(s),
			command("search", "search the tools of all servers", "QUERY",
				func(c *cli.Context, p *mcpproxy.Proxy) error { return serversSearch(c, s, p) }),
			command("call", "call a tool and print the server's answer as JSON", "NAME TOOL [ARGUMENTS]",
				func(c *cli.Context, p *mcpproxy.Proxy) error { return serversCall(c, s, p) }),
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
	log := newLogger(conf, s.Err)
	found, err := discoverServers(conf, log)
	if err != nil {
		return err
	}
	if err := found.askTrust(c.Context, s); err != nil {
		return err
	}
	if name := c.Command.Name; name != "list" && name != "check" { // which say it themselves
		found.logProblems()
	}
	p := mcpproxy.New(found.config, mcpproxy.Options{
		Log: log, ClientVersion: version, TokenDir: conf.TokenDir(), CatalogDir: conf.CatalogDir(),
	})
	defer func() { err = errors.Join(err, p.Close()) }()
	return action(c, p)
}

func serversList(c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	all := p.Servers()
	printProblems(s.Err, all, p.Problems())
	printUnmatchedSections(c, s.Err, all)
	if c.Bool("json") {
		return console.PrintJSON(s.Out, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(s.Err, "toolcell: no servers were found\nhint: put one into ~/MCPs/NAME.json: {\"mcpServers\": {\"NAME\": {\"command\": \"…\", \"args\": []}}}")
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

// printProblems names the files that cannot be read, and counts the servers
// that cannot be used until the user does something.
func printProblems(w io.Writer, all []mcpproxy.ServerStatus, problems []config.Problem) {
	count := map[string]int{}
	for _, st := range all {
		count[st.Status]++
	}
	for _, p := range problems {
		if p.Server == "" {
			fmt.Fprintf(w, "toolcell: %s\n", p)
		}
	}
	for _, c := range []struct{ status, one, more, cure string }{
		{config.StatusUntrusted, "server is", "servers are", "in files of this project that may not start commands yet: toolcell servers trust FILE"},
		{config.StatusNeedsValue, "server needs", "servers need", "a value: toolcell servers set NAME INPUT"},
	} {
		if n := count[c.status]; n == 1 {
			fmt.Fprintf(w, "toolcell: 1 %s %s\n", c.one, c.cure)
		} else if n > 1 {
			fmt.Fprintf(w, "toolcell: %d %s %s\n", n, c.more, c.cure)
		}
	}
}

// A serverTool is a row of servers tools and servers search.
type serverTool struct {
	Server      string  `json:"server"`
	Tool        string  `json:"tool"`
	Description string  `json:"description,omitempty"`
	Score       float64 `json:"score,omitempty"` // of a search
}

func serversTools(c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	names := c.Args().Slice()
	if len(names) == 0 {
		for _, st := range p.Servers() {
			if st.Alias != "" {
				names = append(names, st.Name)
			}
		}
	}
	var rows []serverTool
	var failed []error
	for _, name := range names {
		tools, err := p.Refresh(c.Context, name)
		if err != nil {
			// A server that does not start does not hide the others.
			failed = append(failed, err)
			continue
		}
		for _, t := range tools {
			rows = append(rows, serverTool{name, t.Name, t.Description, 0})
		}
	}
	return errors.Join(append([]error{printTools(c, s, rows)}, failed...)...)
}

func serversSearch(c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	if !c.Args().Present() {
		return console.Usagef("servers search takes what to search for")
	}
	docs, problems, err := p.Search(c.Context, strings.Join(c.Args().Slice(), " "), 10, false, nil)
	if err != nil {
		return err
	}
	for _, problem := range problems {
		fmt.Fprintf(s.Err, "toolcell: not searched: %s\n", console.Shown(s.Err, problem.String()))
	}
	var rows []serverTool
	for _, d := range docs {
		rows = append(rows, serverTool{d.Server, d.Tool, d.Description, d.Score})
	}
	return printTools(c, s, rows)
}

func serversCall(c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	if c.NArg() < 2 || c.NArg() > 3 {
		return console.Usagef(`servers call takes a server, a tool and the arguments as a JSON object, such as '{"path": "/tmp"}'`)
	}
	arguments := json.RawMessage("{}")
	if c.NArg() == 3 {
		arguments = json.RawMessage(c.Args().Get(2))
		var object map[string]any
		if err := json.Unmarshal(arguments, &object); err != nil {
			return console.Usagef("the arguments %s are no JSON object: %w", c.Args().Get(2), err)
		}
	}
	conf, err := settings.Read(c)
	if err != nil {
		return err
	}
	answer, err := p.Call(c.Context, mcpproxy.CallRequest{
		Server: c.Args().Get(0), Tool: c.Args().Get(1), Arguments: arguments, Run: loadPolicy(conf, newLogger(conf, s.Err)).NewRun(),
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, answer.JSON, "", "  "); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	fmt.Fprintln(s.Out, console.Filtered(s.Out, out.String()))
	if answer.IsError {
		return &console.ExitError{Code: console.ExitFail} // the answer says why
	}
	return nil
}

func printTools(c *cli.Context, s *console.Streams, rows []serverTool) error {
	if c.Bool("json") {
		return console.PrintJSON(s.Out, rows)
	}
	columns := []console.Column{{Name: "SERVER"}, {Name: "TOOL"}, {Name: "SCORE"}, {Name: "DESCRIPTION"}}
	scored := len(rows) > 0 && rows[0].Score > 0
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{r.Server, r.Tool, fmt.Sprintf("%.2f", r.Score), console.OneLine(r.Description, descriptionWidth)})
	}
	if !scored {
		columns = slices.Delete(columns, 2, 3)
		for i := range cells {
			cells[i] = slices.Delete(cells[i], 2, 3)
		}
	}
	return console.PrintTable(s.Out, columns, cells)
}

// descriptionWidth bounds a tool's description in a table: servers write pages.
// --json shows all of it.
const descriptionWidth = 200
