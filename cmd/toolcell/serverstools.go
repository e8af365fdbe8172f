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
)

// A serverTool is a row of servers tools and servers search.
type serverTool struct {
	Server      string  `json:"server"`
	Tool        string  `json:"tool"`
	Description string  `json:"description,omitempty"`
	Score       float64 `json:"score,omitempty"` // of a search
}

func serversTools(ctx context.Context, o Options, p *mcpproxy.Proxy) error {
	names := o.Args
	if len(names) == 0 {
		names = usable(p)
	}
	var rows []serverTool
	var failed []error
	var notes []string
	progress := console.NewProgress(o.Err, o.JSON)
	for i, name := range names {
		progress.Show(fmt.Sprintf("asking %s for its tools (server %d of %d)", name, i+1, len(names)))
		tools, err := p.Refresh(ctx, name)
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
		console.Note(o.Err, note)
	}
	switch {
	case o.JSON || len(rows) > 0 || len(names) == 0:
		failed = append(failed, printTools(o, rows))
	case len(failed) == 0:
		_ = printNone(o.Streams, "the "+text.Plural(len(names), "server")+" asked "+map[bool]string{true: "has", false: "have"}[len(names) == 1]+" no tools", "toolcell servers check")
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

func serversSearch(ctx context.Context, o Options, p *mcpproxy.Proxy) error {
	query := strings.Join(o.Args, " ")
	docs, err := searchShown(ctx, o, p, query)
	if err != nil {
		return err
	}
	var rows []serverTool
	for _, d := range docs {
		rows = append(rows, serverTool{d.Server, d.Tool, d.Description, d.Score})
	}
	if o.JSON || len(rows) > 0 || len(usable(p)) == 0 {
		return printTools(o, rows)
	}
	return printNone(o.Streams, fmt.Sprintf("no tool of your servers fits %q", text.Printable(query, 100)), "toolcell servers tools lists all of them")
}

// searchHits is how many tools a search shows.
const searchHits = 10

// searchShown searches, and says meanwhile what it waits for: the first search starts
// all servers.
func searchShown(ctx context.Context, o Options, p *mcpproxy.Proxy, query string) ([]mcpproxy.ToolDoc, error) {
	progress := console.NewProgress(o.Err, o.JSON)
	defer progress.Close()
	progress.Show("asking " + text.Plural(len(usable(p)), "server") + " for tools")
	docs, problems, err := p.Search(ctx, query, searchHits, false, mcpproxy.AnyServer)
	progress.Close()
	for _, problem := range problems {
		console.Plainly(o.Err, "not searched: "+problem.String())
	}
	return docs, err
}

func printTools(o Options, rows []serverTool) error {
	columns := []console.Column{{Name: "SERVER"}, {Name: "TOOL"}, {Name: "SCORE"}, {Name: "DESCRIPTION"}}
	scored := len(rows) > 0 && rows[0].Score > 0
	if !scored {
		columns = slices.Delete(columns, 2, 3)
	}
	return printRows(o, rows, noServers, noServersNext, columns, func(r serverTool) []string {
		cells := []string{r.Server, r.Tool, fmt.Sprintf("%.2f", r.Score), console.OneLine(r.Description, descriptionWidth)}
		if !scored {
			cells = slices.Delete(cells, 2, 3)
		}
		return cells
	})
}

// descriptionWidth bounds a tool's description in a table: servers write pages.
// --json shows all of it.
const descriptionWidth = 200
