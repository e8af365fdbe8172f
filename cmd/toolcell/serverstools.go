package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/urfave/cli/v2"
)

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
		names = usable(p)
	}
	var rows []serverTool
	var failed []error
	var notes []string
	progress := console.NewProgress(s.Err, c.Bool("json"))
	for i, name := range names {
		progress.Show(fmt.Sprintf("asking %s for its tools (server %d of %d)", name, i+1, len(names)))
		tools, err := p.Refresh(c.Context, name)
		if err != nil {
			// A server that does not start does not hide the others.
			failed = append(failed, forShell(err))
			continue
		}
		for _, t := range tools {
			rows = append(rows, serverTool{name, t.Name, t.Description, 0})
		}
		pinned, err := p.Pins(name)
		if err != nil {
			failed = append(failed, err)
		}
		if remark := pinRemark(name, pinned); remark != "" {
			notes = append(notes, fmt.Sprintf("server %q: %s", name, remark))
		}
	}
	progress.Close()
	for _, note := range notes {
		console.Note(s.Err, note)
	}
	switch {
	case c.Bool("json") || len(rows) > 0:
		failed = append(failed, printTools(c, s, rows))
	case len(names) == 0:
		noServers(s)
	case len(failed) == 0:
		printNone(s, "the "+text.Plural(len(names), "server")+" asked "+map[bool]string{true: "has", false: "have"}[len(names) == 1]+" no tools", "toolcell servers check")
	}
	return errors.Join(failed...)
}

// usable returns the names of the servers that can be started.
func usable(p *mcpproxy.Proxy) (names []string) {
	for _, st := range p.Servers() {
		if st.Alias != "" {
			names = append(names, st.Name)
		}
	}
	return names
}

func serversSearch(c *cli.Context, s *console.Streams, p *mcpproxy.Proxy) error {
	if !c.Args().Present() {
		return console.Usagef("servers search needs a query")
	}
	query := strings.Join(c.Args().Slice(), " ")
	docs, err := searchShown(c.Context, c, s, p, query)
	if err != nil {
		return err
	}
	var rows []serverTool
	for _, d := range docs {
		rows = append(rows, serverTool{d.Server, d.Tool, d.Description, d.Score})
	}
	switch {
	case c.Bool("json") || len(rows) > 0:
		return printTools(c, s, rows)
	case len(usable(p)) == 0:
		noServers(s)
	default:
		printNone(s, fmt.Sprintf("no tool of your servers fits %q", text.Printable(query, 100)), "toolcell servers tools lists all of them")
	}
	return nil
}

// searchShown searches, and says meanwhile what it waits for: the first search starts
// all servers.
func searchShown(ctx context.Context, c *cli.Context, s *console.Streams, p *mcpproxy.Proxy, query string) ([]mcpproxy.ToolDoc, error) {
	progress := console.NewProgress(s.Err, c.Bool("json"))
	defer progress.Close()
	progress.Show("asking " + text.Plural(len(usable(p)), "server") + " for tools")
	docs, problems, err := p.Search(ctx, query, 10, false, mcpproxy.AnyServer)
	progress.Close()
	for _, problem := range problems {
		console.Plainly(s.Err, "not searched: "+problem.String())
	}
	return docs, err
}

func printTools(c *cli.Context, s *console.Streams, rows []serverTool) error {
	if c.Bool("json") {
		return console.PrintJSON(s, rows)
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
