package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
)

// Formats of exports.
const (
	formatJSONL = "jsonl"
	formatCSV   = "csv"
)

func formatFlag() cli.Flag {
	return &cli.StringFlag{Name: "format", Value: formatJSONL, Usage: "`FORMAT` is jsonl, a line for each entry with its values, or csv, a row for each call"}
}

// runsExport prints runs as they are on record, the oldest day first.
func runsExport(_ context.Context, o runsOptions) error {
	f, err := o.filter(time.Now())
	if err != nil {
		return err
	}
	switch o.Format {
	case formatJSONL:
		err = o.exportLines(f)
	case formatCSV:
		err = o.exportRows(f)
	default:
		return console.Invalidf("--format is jsonl or csv, got %q", o.Format)
	}
	return o.Settings.Dirs.Explain(err)
}

// exportLines prints the entries. A private server is told by the calls before what the code printed.
func (o runsOptions) exportLines(f history.Filter) error {
	o.JSONPrinted = true // lines, and maybe none
	shown := timeline.Options{Hide: o.hide()}
	private := map[string]*timeline.Timeline{} // calls of private servers, by run
	for e, err := range o.history().Entries(f) {
		if err != nil {
			return err
		}
		t := private[e.Run]
		if t == nil {
			t = timeline.New(history.Run{ID: e.Run}, nil)
			private[e.Run] = t
		}
		t.Add(&e)
		line, err := t.JSON(shown, &e)
		if err == nil {
			err = console.PrintJSONLine(o.Streams, line)
		}
		if err != nil {
			return err
		}
		if e.Kind == record.KindRunEnd || e.Kind == record.KindRunCost || e.Run == "" {
			delete(private, e.Run)
		}
	}
	return nil
}

// exportHead are the columns of CSV.
var exportHead = []string{
	"run", "began", "client", "client_version", "user", "host", "command", "session", "status", "took_ms",
	"call", "line", "call_began", "server", "tool", "writes", "outcome", "call_ms", "arguments_bytes", "answer_bytes", "allowed",
}

// exportRows prints a row for each call, and one for a run without calls.
func (o runsOptions) exportRows(f history.Filter) error {
	runs := map[string]history.Run{}
	for run, err := range o.history().Runs(f) {
		if err != nil {
			return err
		}
		runs[run.ID] = run
	}
	out := csv.NewWriter(o.Stdout())
	if err := out.Write(exportHead); err != nil {
		return err
	}
	shown := timeline.Options{Hide: o.hide()}
	open, ended := map[string][]history.Entry{}, map[string]bool{}
	print := func(id string) error {
		rows := exportedRows(timeline.New(runs[id], open[id]), shown)
		delete(open, id)
		return out.WriteAll(rows)
	}
	for e, err := range o.history().Entries(f) {
		if err != nil {
			return err
		}
		if end, ok := e.Body.(*record.CallEnd); !ok || end.Outcome != record.Refused {
			e.Values = nil // CSV only says why toolcell refused a call
		}
		if _, wanted := runs[e.Run]; !wanted || ended[e.Run] {
			continue // it began meanwhile
		}
		open[e.Run] = append(open[e.Run], e)
		if e.Kind != record.KindRunEnd {
			continue
		}
		ended[e.Run] = true
		if err := print(e.Run); err != nil {
			return err
		}
	}
	rest := slices.SortedFunc(maps.Keys(open), func(a, b string) int { return runs[a].Start.Compare(runs[b].Start) })
	for _, id := range rest {
		if err := print(id); err != nil {
			return err
		}
	}
	out.Flush()
	return cmp.Or(out.Error(), o.WriteError())
}

// exportedRows returns the rows of a run.
func exportedRows(t *timeline.Timeline, o timeline.Options) (rows [][]string) {
	r := t.Run
	head := []string{
		r.ID, r.Start.UTC().Format(time.RFC3339Nano), r.Client.Name, r.Client.Version, r.User, r.Host, r.Command, r.Session, r.Status, milliseconds(r.Duration),
	}
	for _, c := range t.Calls {
		var took, arguments, answer string
		if c.Start != nil {
			arguments = strconv.FormatInt(c.Start.Arguments.Size, 10)
		}
		if c.End != nil && c.Start != nil {
			took, answer = milliseconds(c.End.Duration), strconv.FormatInt(c.End.Answer.Size, 10)
		}
		allowed, _ := t.WhoAllowed(c, o)
		rows = append(rows, append(slices.Clone(head),
			strconv.Itoa(c.Number), strconv.Itoa(c.Line), c.At.UTC().Format(time.RFC3339Nano), c.Server, cmp.Or(c.Tool, c.Effect),
			strconv.FormatBool(c.Writes), c.RecordedOutcome(), took, arguments, answer, allowed))
	}
	if len(rows) == 0 {
		rows = [][]string{append(head, make([]string, len(exportHead)-len(head))...)}
	}
	for _, row := range rows {
		for i := range row {
			row[i] = plainCell(row[i])
		}
	}
	return rows
}

func milliseconds(us int64) string {
	if us == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", float64(us)/1000)
}

// plainCell keeps a spreadsheet from taking text of others for a formula.
func plainCell(s string) string {
	s = console.Plain(s)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}
