package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/pins"
)

const pinsDescription = "A server's tools are pinned when toolcell first learns of them: their names, descriptions,\n" +
	"schemas and annotations. This shows what the server has changed since, without starting\n" +
	"it. accept pins one tool, or all of them, as they are shown."

// acceptWord is the argument before a name that accepts changes.
const acceptWord = "accept"

func serversPins(_ context.Context, o Options, p *mcpproxy.Proxy) error {
	names := o.Args
	if len(names) > 0 && names[0] == acceptWord {
		if _, err := p.Lookup(acceptWord); len(names) > 1 || err != nil { // else it is a server's name
			return acceptPins(o, p, names[1:])
		}
	}
	if len(names) == 0 {
		names = usable(p)
	}
	var rows []pinRow
	var failed []error
	for _, name := range names {
		server, err := p.Lookup(name)
		if err == nil {
			var pinned *pins.Server
			if pinned, err = p.Pins(server.Name); err == nil {
				rows = append(rows, newPinRow(server.Name, pinned))
			}
		}
		if err != nil {
			failed = append(failed, forShell(err)) // it does not hide the others
		}
	}
	switch {
	case o.JSON:
		failed = append(failed, console.PrintJSON(o.Streams, rows))
	case len(names) == 0:
		return printNone(o.Streams, noServers, noServersNext)
	default:
		printPins(o.Streams, rows)
	}
	return errors.Join(failed...)
}

// A pinRow is a row of servers pins.
type pinRow struct {
	Server  string       `json:"server"`
	Status  string       `json:"status"`         // unchanged, changed, or unknown while no tools were ever listed
	Since   time.Time    `json:"since,omitzero"` // when its tools were pinned
	Tools   int          `json:"tools"`
	Changes []toolChange `json:"changes,omitempty"`
	Hidden  []hiddenTool `json:"hidden,omitempty"`
}

// A toolChange is a tool that differs from its pin.
type toolChange struct {
	Tool        string            `json:"tool"`
	Change      pins.Change       `json:"change"`
	Since       time.Time         `json:"since,omitzero"` // when it was pinned
	Noticed     time.Time         `json:"noticed"`
	Digest      string            `json:"sha256,omitempty"` // of what the server says now
	Differences []pins.Difference `json:"differences,omitempty"`
	// Reads says that the server says the tool only reads, which does not count until it is
	// accepted.
	Reads bool `json:"readsOnlyUnaccepted,omitempty"`
}

// A hiddenTool is a tool with characters in its definition that cannot be seen.
type hiddenTool struct {
	Tool  string   `json:"tool"`
	In    []string `json:"in"`    // the part of the definition, and the characters
	Lines []string `json:"lines"` // that have them, written as escapes
}

func newPinRow(server string, pinned *pins.Server) pinRow {
	row := pinRow{Server: server, Status: "unknown"}
	if pinned == nil {
		return row
	}
	row.Status, row.Since, row.Tools = "unchanged", pinned.Since, len(pinned.Tools)
	for _, name := range slices.Sorted(maps.Keys(pinned.Tools)) {
		t := pinned.Tools[name]
		now := t.Now()
		if len(now.Hidden) > 0 && t.Gone.IsZero() {
			row.Hidden = append(row.Hidden, hiddenTool{name, now.Hidden, now.HiddenLines()})
		}
		change := toolChange{Tool: name, Change: t.Change()}
		switch change.Change {
		case pins.Unchanged:
			continue
		case pins.Removed:
			change.Since, change.Noticed = t.Pinned.Since, t.Gone
		case pins.Changed:
			change.Since = t.Pinned.Since
			fallthrough
		default:
			change.Noticed, change.Digest, change.Differences, change.Reads = now.Since, now.Digest, t.Differences(), t.HintUnaccepted()
		}
		row.Changes = append(row.Changes, change)
		row.Status = "changed"
	}
	return row
}

// maxShownTools is how many tools of one server are shown; --json has all.
const maxShownTools = 50

func printPins(s *console.Streams, rows []pinRow) {
	out := s.Stdout()
	color := console.ColorsFor(s.Out)
	for _, row := range rows {
		name := color.Bold(text.Visible(row.Server))
		if row.Status == "unknown" {
			fmt.Fprintf(out, "%s: its tools are not known yet: toolcell servers check %s\n", name, text.ShellWord(row.Server))
			continue
		}
		fmt.Fprintf(out, "%s: pinned since %s; %s%s\n", name, day(row.Since), text.Plural(row.Tools, "tool"), cmp.Or(countChanges(row.Changes), ", unchanged"))
		for _, change := range row.Changes[:min(len(row.Changes), maxShownTools)] {
			fmt.Fprintf(out, "  %s %s, noticed %s\n", color.Cyan(text.Visible(change.Tool)), color.Yellow(string(change.Change)), change.Noticed.Local().Format(time.DateTime))
			if change.Reads {
				fmt.Fprintln(out, "    says that it only reads, which does not count until you accept it")
			}
			for _, d := range change.Differences {
				fmt.Fprintf(out, "    %s\n", d.Part)
				for line := range strings.Lines(d.Diff) {
					fmt.Fprintln(out, "      "+color.Diff(strings.TrimSuffix(line, "\n")))
				}
			}
		}
		if more := len(row.Changes) - maxShownTools; more > 0 {
			fmt.Fprintf(out, "  and %s; --json has all\n", text.Plural(more, "more tool"))
		}
		for _, hidden := range row.Hidden[:min(len(row.Hidden), maxShownTools)] {
			fmt.Fprintf(out, "  %s has %s: %s\n", color.Cyan(text.Visible(hidden.Tool)), color.Red("hidden characters"), strings.Join(hidden.In, "; "))
			for _, line := range hidden.Lines {
				fmt.Fprintf(out, "      %s\n", line)
			}
		}
		if len(row.Changes) > 0 {
			fmt.Fprintf(out, "  to accept this: toolcell servers pins accept %s\n", text.ShellWord(row.Server))
		}
	}
}

func day(t time.Time) string { return t.Local().Format(time.DateOnly) }

// countChanges returns how many tools were changed, added and removed.
func countChanges(changes []toolChange) (counts string) {
	n := map[pins.Change]int{}
	for _, change := range changes {
		n[change.Change]++
	}
	for _, kind := range []pins.Change{pins.Changed, pins.Added, pins.Removed} {
		if n[kind] > 0 {
			counts += fmt.Sprintf(", %d %s", n[kind], kind)
		}
	}
	return counts
}

// An acceptedPin is a row of servers pins accept.
type acceptedPin struct {
	Server string      `json:"server"`
	Tool   string      `json:"tool"`
	Change pins.Change `json:"change"` // what was taken over
	Digest string      `json:"sha256,omitempty"`
}

func acceptPins(o Options, p *mcpproxy.Proxy, args []string) error {
	if len(args) < 1 || len(args) > 2 {
		return console.Usagef("servers pins accept takes the name of a server, and that of a tool if only that is to be pinned")
	}
	server, err := p.Lookup(args[0])
	if err != nil {
		return err
	}
	tool := strings.Join(args[1:], "") // "" for all
	known, err := p.Pins(server.Name)
	if err != nil {
		return err
	}
	if err := checkPinned(known, server.Name, tool); err != nil {
		return err
	}
	journal := openRecord(o.Settings, appOptions{command: acceptCommand, log: shellLogger(o)}, p)
	taken, err := acceptOnRecord(p, server.Name, tool, journal, o.Settings.RecordRequired)
	if errRecord := journal.Close(); errRecord != nil {
		console.Note(o.Err, "the record is not in order: "+errRecord.Error())
	}
	if err != nil {
		return err
	}
	if missing := journal.Incomplete(); missing.Entries > 0 {
		console.Note(o.Err, "this is not on record: "+missing.Err.Error())
	}
	rows := []acceptedPin{}
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		t := taken[name]
		row := acceptedPin{Server: server.Name, Tool: name, Change: t.Change()}
		if t.Seen != nil {
			row.Digest = t.Seen.Digest
		}
		rows = append(rows, row)
	}
	if o.JSON {
		return console.PrintJSON(o.Streams, rows)
	}
	printAccepted(o.Streams, server.Name, rows)
	return nil
}

// acceptCommand is what the record says of pins that this command accepts.
const acceptCommand = "servers pins accept"

// acceptOnRecord accepts changes, and records them. They are of no run.
func acceptOnRecord(p *mcpproxy.Proxy, server, tool string, journal *record.Journal, required bool) (map[string]pins.Tool, error) {
	if required {
		if err := journal.Ready(); err != nil {
			return nil, fmt.Errorf("nothing is accepted without a record, and this cannot be recorded: %w", err)
		}
	}
	taken, err := p.AcceptPins(server, tool)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		t := taken[name]
		line := record.Pin{Server: server, Tool: name, Change: "accepted", By: "toolcell " + acceptCommand}
		if t.Pinned != nil {
			line.Before = t.Pinned.Digest
		}
		if t.Seen != nil {
			line.Now = t.Seen.Digest
		}
		_ = journal.Append(line) // an error is counted
	}
	return taken, nil
}

// checkPinned returns an error if there is nothing that could be accepted.
func checkPinned(known *pins.Server, server, tool string) error {
	switch {
	case known == nil:
		return fmt.Errorf("the tools of server %q are not known yet: toolcell servers check %s", server, text.ShellWord(server))
	case tool == "" || known.Tools[tool] != nil:
		return nil
	}
	names := slices.Sorted(maps.Keys(known.Tools))
	return fmt.Errorf("server %q has no tool %q; the nearest are %s", server, text.Printable(tool, 200), text.QuoteList(text.Nearest(tool, names, 3), 3))
}

func printAccepted(s *console.Streams, server string, rows []acceptedPin) {
	if len(rows) == 0 {
		fmt.Fprintf(s.Stdout(), "nothing to accept: the tools of server %q are as they were pinned\n", server)
	}
	for _, row := range rows {
		how := map[pins.Change]string{
			pins.Changed: "pinned as it is now", pins.Added: "pinned, a new tool", pins.Removed: "forgotten, since the server no longer has it",
		}[row.Change]
		fmt.Fprintf(s.Stdout(), "%s of %s: %s\n", text.Visible(row.Tool), text.Visible(server), how)
	}
}

// pinRemark is the summary of a row of servers pins with the command that shows more, "" if there is none.
func pinRemark(server string, pinned *pins.Server) string {
	said := newPinRow(server, pinned).summary()
	if said != "" {
		said += ": toolcell servers pins " + text.ShellWord(server)
	}
	return said
}

// summary says in one line which tools differ from their pins or have hidden characters, "" if none.
func (row pinRow) summary() string {
	var all []string
	if len(row.Changes) > 0 {
		all = append(all, strings.TrimPrefix(countChanges(row.Changes), ", ")+" since "+day(row.Since))
	}
	if n := len(row.Hidden); n > 0 {
		all = append(all, text.Plural(n, "tool")+" with hidden characters")
	}
	if len(all) == 0 {
		return ""
	}
	return "tools: " + strings.Join(all, "; ")
}
