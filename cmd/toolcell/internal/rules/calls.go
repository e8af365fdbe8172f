package rules

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on what is read of the record.
const (
	MaxRuns      = 1000
	maxCalls     = 20_000
	maxArguments = 64 << 20 // bytes of all that are looked at
)

// Bounds on time, which tests on a busy host change.
var (
	readTime  = 4 * time.Second
	judgeTime = time.Second
)

// The bounds on time, in words.
const (
	tooLongRead   = "4 s of reading"
	tooLongJudged = "1 s of judging"
)

// ErrNoCall is of a call that is not on record, or is not one of a tool.
var ErrNoCall = errors.New("no such call of a tool is on record")

// A Call is one on record, with what its policy decided then.
type Call struct {
	Run          string
	Number       int
	Server, Tool string
	Effect       string // the method, such as tools/call
	Writes       bool
	Partial      bool   // its names are not known whole
	Then         string // what the policy of the run decided: allow, ask, deny or plan
	// Arguments are nil unless they are kept whole and may be shown.
	Arguments []byte

	entry history.Entry // that has the arguments
	text  *record.Text
}

// OfTool reports whether it is a call of a tool, and not one that reads something else of a server.
func (c *Call) OfTool() bool { return c.Effect == "tools/call" && c.Tool != "" }

// Name is SERVER.TOOL, or what else was asked of the server.
func (c *Call) Name() string { return timeline.CallName(c.Server, c.Effect, c.Tool) }

// A Past is the calls of the last runs on record.
type Past struct {
	Runs   int
	Calls  []*Call  // the newest first
	Bounds []string // that were hit, so that older calls or arguments are left out
}

// A reading is how far the record was read.
type reading struct {
	record *history.Record
	shown  timeline.Options
	until  time.Time
	past   Past
	runs   map[string]*runRead
	oldest time.Time
	calls  map[callKey]*Call
}

// A runRead is what is known of a run.
type runRead struct {
	private bool // it could use a server whose values are not shown
	begun   bool // its start was read, so that it is known what it could use
}

type callKey struct {
	run    string
	number int
}

// read returns the calls of the last MaxRuns runs: all but those that were planned only. It reads the
// arguments of calls that wanted is true for, and of no run whose values are not shown. It stops at the
// bounds, and when ctx ends.
func read(ctx context.Context, from *history.Record, shown timeline.Options, wanted func(*Call) bool) (Past, error) {
	r := reading{record: from, shown: shown, until: time.Now().Add(readTime), runs: map[string]*runRead{}, calls: map[callKey]*Call{}}
	for _, step := range []func(context.Context) error{r.readRuns, r.readCalls, func(ctx context.Context) error { return r.readArguments(ctx, wanted) }} {
		if err := step(ctx); err != nil {
			return r.past, err
		}
	}
	r.past.Runs = len(r.runs)
	r.past.Calls = slices.DeleteFunc(r.past.Calls, func(c *Call) bool { return c.Then == "plan" || c.Then == "" })
	return r.past, nil
}

// over reports whether the time is up.
func (r *reading) over(ctx context.Context) bool {
	if ctx.Err() == nil && time.Now().Before(r.until) {
		return false
	}
	r.bound(tooLongRead)
	return true
}

func (r *reading) bound(what string) {
	if !slices.Contains(r.past.Bounds, what) {
		r.past.Bounds = append(r.past.Bounds, what)
	}
}

func (r *reading) readRuns(ctx context.Context) error {
	for run, err := range r.record.Runs(history.Filter{}) {
		switch {
		case err != nil:
			return err
		case len(r.runs) == MaxRuns, r.over(ctx):
			return nil
		}
		r.runs[run.ID], r.oldest = &runRead{}, run.Start
		r.touch(run.ID, run.Private, run.Servers...)
	}
	return nil
}

// touch notes that a run could use servers, and whether one was private then.
func (r *reading) touch(run string, private bool, servers ...string) {
	if r.shown.Hide != nil && (private || slices.ContainsFunc(servers, func(s string) bool { return s != "" && r.shown.Hide(s) })) {
		r.runs[run].private = true
	}
}

// hides reports whether the arguments of a run are not to be looked at.
func (r *reading) hides(run string) bool {
	return r.shown.HideAll || r.shown.Hide != nil && (r.runs[run].private || !r.runs[run].begun)
}

// readCalls reads the entries of the runs, the last ones first.
func (r *reading) readCalls(ctx context.Context) error {
	n := 0
	for e, err := range r.record.Newest(record.KindRunStart, record.KindRunEnd, record.KindVerdict, record.KindCallStart, record.KindCallEnd) {
		if n++; err != nil || len(r.runs) == 0 || e.Time.Before(r.oldest) || n%100 == 0 && r.over(ctx) {
			return err
		}
		if _, ours := r.runs[e.Run]; !ours {
			continue
		}
		switch b := e.Body.(type) {
		case *record.RunStart:
			r.runs[e.Run].begun = true
			r.touch(e.Run, b.Private, b.Grants.Servers...)
		case *record.RunEnd:
			r.touch(e.Run, b.Private)
		case *record.CallEnd:
			r.touch(e.Run, b.Private, b.Server)
		case *record.CallStart:
			r.touch(e.Run, b.Private, b.Server)
			if c := r.call(&e, b.Call); c != nil && c.Then == "" {
				*c = Call{Run: e.Run, Number: b.Call, Server: b.Server, Tool: b.Tool, Effect: b.Effect, Writes: b.Writes, Then: "allow"}
				c.take(&e, b.Server, b.Tool, &b.Arguments)
			}
		case *record.Verdict:
			r.touch(e.Run, b.Private, b.Server)
			if c := r.call(&e, b.Call); c != nil {
				if c.text == nil {
					*c = Call{Run: e.Run, Number: b.Call, Server: b.Server, Tool: b.Tool, Effect: b.Effect, Writes: b.Writes}
					c.take(&e, b.Server, b.Tool, &b.Arguments)
				}
				c.Then = b.Decision
			}
		}
	}
	return nil
}

// call returns that of an entry, nil if it is none or there are too many.
func (r *reading) call(e *history.Entry, number int) *Call {
	key := callKey{e.Run, number}
	c := r.calls[key]
	switch {
	case number == 0:
		return nil
	case c == nil && len(r.calls) == maxCalls:
		r.bound(text.Plural(maxCalls, "call"))
		return nil
	case c == nil:
		c = &Call{}
		r.calls[key] = c
		r.past.Calls = append(r.past.Calls, c)
	}
	return c
}

// isPartial reports whether an entry does not have its names whole: they were too long, like a secret, or
// had what is no character.
func isPartial(e *history.Entry, names ...string) bool {
	if slices.ContainsFunc(names, func(name string) bool { return strings.ContainsRune(name, utf8.RuneError) }) {
		return true
	}
	if !bytes.Contains(e.Raw, []byte(`"cut":[`)) && !bytes.Contains(e.Raw, []byte(`"hidden":[`)) {
		return false
	}
	var more struct {
		Cut    []record.Cut `json:"cut"`
		Hidden []string     `json:"hidden"` // FIELD: RULE
	}
	if json.Unmarshal(e.Raw, &more) != nil {
		return true
	}
	for _, field := range []string{"server", "tool"} {
		if slices.ContainsFunc(more.Cut, func(c record.Cut) bool { return c.Field == field }) ||
			slices.ContainsFunc(more.Hidden, func(h string) bool { return strings.HasPrefix(h, field+":") }) {
			return true
		}
	}
	return false
}

// readArguments reads those of calls, file by file.
func (r *reading) readArguments(ctx context.Context, wanted func(*Call) bool) error {
	byFile := map[string][]*Call{}
	var files []string
	var size int64
	for _, c := range r.past.Calls {
		switch {
		case r.hides(c.Run) || !c.OfTool() || !c.areWhole() || !wanted(c):
			continue
		case c.text.Size == 0:
			c.Arguments = noArguments
			continue
		}
		if size += int64(c.text.Kept); size > maxArguments {
			r.bound(text.Size(maxArguments) + " of arguments")
			break
		}
		if byFile[c.entry.File] == nil {
			files = append(files, c.entry.File)
		}
		byFile[c.entry.File] = append(byFile[c.entry.File], c)
	}
	for _, name := range files {
		if r.over(ctx) {
			return nil
		}
		entries := make([]history.Entry, len(byFile[name]))
		for i, c := range byFile[name] {
			entries[i] = c.entry
		}
		if err := r.record.JoinValues(entries, "arguments"); err != nil {
			return err
		}
		for i, c := range byFile[name] {
			c.setArguments(&entries[i])
		}
	}
	return nil
}

// areWhole reports whether all of the arguments is kept as it was.
func (c *Call) areWhole() bool {
	return c.text != nil && (c.text.Size == 0 || c.text.Kept > 0 && c.text.Cut == 0 && len(c.text.Hidden) == 0)
}

// setArguments takes them from the values of an entry, if they are what was recorded.
func (c *Call) setArguments(e *history.Entry) {
	if c.text.Size == 0 {
		c.Arguments = noArguments
	} else if v := e.Values["arguments"]; v != nil && !v.Wrong && v.Tail == "" {
		c.Arguments, _ = rawjson.Canonical([]byte(v.Value.Value)) // what is no JSON was not sent
	}
}

// find returns a call of a tool on record, however old, with its arguments if they may be shown.
func find(from *history.Record, shown timeline.Options, run string, number int) (*Call, error) {
	entries, err := from.Show(run)
	if err != nil || len(entries) == 0 {
		return nil, cmp.Or(err, ErrNoCall)
	}
	t := timeline.New(history.Run{ID: entries[0].Run}, entries)
	at := slices.IndexFunc(t.Calls, func(c *timeline.Call) bool { return c.Number == number })
	if at < 0 {
		return nil, ErrNoCall
	}
	found := t.Calls[at]
	c := &Call{Run: entries[0].Run, Number: number, Server: found.Server, Tool: found.Tool, Effect: found.Effect, Writes: found.Writes, Then: "allow"}
	for i := range entries {
		e := &entries[i]
		switch b := e.Body.(type) {
		case *record.Verdict:
			if b.Call == number {
				c.Then = b.Decision
				c.take(e, b.Server, b.Tool, &b.Arguments)
			}
		case *record.CallStart: // whose arguments count
			if b.Call == number {
				c.take(e, b.Server, b.Tool, &b.Arguments)
			}
		}
	}
	if !c.OfTool() || c.text == nil {
		return nil, ErrNoCall
	}
	v := t.ArgumentsValue(found, shown)
	hidden := v != nil && v.NotShown || shown.Hide != nil && t.Start == nil // it is not known what the run could use
	if c.areWhole() && !hidden {
		c.setArguments(&c.entry)
	}
	return c, nil
}

// take notes the entry that has the arguments.
func (c *Call) take(e *history.Entry, server, tool string, arguments *record.Text) {
	c.Partial = isPartial(e, server, tool)
	c.entry, c.text = *e, arguments
}
