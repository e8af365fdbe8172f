// Package hostapi answers the requests of code to the host that have no effect: documentation
// of servers and tools, saved tools, pictures, input. Errors of servers pass the gate, and so
// does the source of a saved tool. What code asks is bounded.
package hostapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// Options configure the API of one run. Upstreams, Gate, Saved and Display are
// required.
type Options struct {
	Upstreams *mcpproxy.Proxy // the user's MCP servers
	Gate      *gate.Gate
	Policy    *policy.Enforcer // of the gate, for notes about its rules
	Saved     savedtools.Store
	// Display adds a picture, as artifacts.Collector.Display does.
	Display func(name string, data []byte, rasterFollows bool) error
	// Printed are the streams of the session's last run that its code may read.
	Printed map[string]io.ReaderAt
	// Input returns the next line of standard input; it is nil if the code does
	// not read that through the host. ErrInterrupted is Ctrl-C instead of a line.
	Input func(ctx context.Context) (string, error)
	// First reports whether a note is given for the first time; nil if all are.
	First func(note string) bool
	// Record has which saved tools are saved, removed and given to the code; nil records nothing.
	Record *record.Run
	Log    *slog.Logger // nothing is logged if nil
}

// An API answers the calls of one run: it is the runner.Host of the run. It is
// safe for concurrent use.
type API struct {
	o       Options
	saved   savedTools
	left    leftOut
	working *semaphore.Weighted // bounds calls that go on after the run's end: they compute or write files
}

// maxWorking is how many of those calls work at once. A run that ends waits for them.
const maxWorking = 4

// New makes the API of one run.
func New(o Options) *API {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.First == nil {
		o.First = func(string) bool { return true }
	}
	return &API{
		o: o, left: leftOut{first: o.First},
		saved:   savedTools{store: o.Saved, gate: o.Gate, log: o.Log, record: savedRecord{run: o.Record}},
		working: semaphore.NewWeighted(maxWorking),
	}
}

// Notes returns notes for the caller about the run's requests: servers that a
// search left out, tools that their servers have changed, saved tools that no longer
// work, and those that were replaced.
func (a *API) Notes() []string {
	return slices.Concat(a.left.note(), a.o.Upstreams.PinNotes(a.o.Gate.Used()), a.policyNotes(), a.saved.allNotes())
}

// policyNotes returns, and logs, what in the policy about the servers that were used matches
// no tool, each once.
func (a *API) policyNotes() (notes []string) {
	if !a.o.Policy.NamesTools() {
		return nil
	}
	for _, server := range a.o.Gate.Used() {
		s, err := a.o.Upstreams.Lookup(server)
		if err != nil {
			continue // it was removed meanwhile
		}
		for _, u := range a.o.Policy.UnmatchedTools(gate.KnownTools(s, a.o.Upstreams.KnownTools(server))) {
			if note := "policy: " + u.String(); u.Plain && a.left.first(note) {
				a.o.Log.Warn("a name in the policy matches no tool", "server", server, "section", u.Section, "rule", u.Rule, "meant", u.Meant)
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// Answer answers what the code asks that has no effect; it implements runner.Host.
func (a *API) Answer(ctx context.Context, c runner.Call) (runner.Answer, error) {
	p := c.Params
	switch c.Method {
	case "search_tool_docs":
		return a.search(ctx, p)
	case "read_printed": // many at once would take much memory
		return later(func() (any, error) { return a.readPrinted(p.Name, p.Offset) }), nil
	case "list_tools":
		return a.document(ctx, p.Server, func(ctx context.Context) (any, error) { return a.tools(ctx, p.Server) })
	case "describe_server":
		return a.document(ctx, p.Server, func(ctx context.Context) (any, error) { return a.describe(ctx, p.Server) })
	case "query_tool_docs":
		return a.document(ctx, p.Server, func(ctx context.Context) (any, error) {
			docs, err := a.docs(ctx, p)
			return withDetail(docs, p.Detail), err
		})
	case "saved_tools":
		return a.document(ctx, p.Server, func(context.Context) (any, error) { return a.saved.listWithoutSource(), nil })
	case "export_tools":
		return a.document(ctx, p.Server, func(context.Context) (any, error) { return a.saved.export(p.Tools) })
	}
	result, err := a.call(ctx, c.Method, p, c.Raw)
	return runner.Answer{JSON: result}, err
}

// call answers the methods whose result is made before it can be sent.
func (a *API) call(ctx context.Context, method string, p runner.Params, raw json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "display":
		return null, a.o.Display(p.Name, p.Data, p.Drawn)
	case "save_tool", "remove_tool", "saved_source":
		return a.savedTool(ctx, method, p.Name, raw)
	case runner.ReadInput:
		return a.readInput(ctx)
	case "saved_failed":
		a.saved.addFailure(p.Name, p.Source)
		return null, nil
	}
	if err := a.notDenied(p.Server); err != nil {
		return nil, err
	}
	switch method {
	case "list_servers":
		return encode(a.serverNames(), nil)
	case "describe_servers":
		return encode(a.servers(), nil)
	case "tool_signature":
		return encode(a.signature(ctx, p.Server, p.Tool))
	}
	return nil, fmt.Errorf("the host knows no method %q", text.Bound(method, 40))
}

// ErrInterrupted is Ctrl-C where the code wanted a line of input.
var ErrInterrupted = errors.New("KeyboardInterrupt")

// readInput returns the next line of standard input, null at its end.
func (a *API) readInput(ctx context.Context) (json.RawMessage, error) {
	if a.o.Input == nil {
		return null, nil
	}
	line, err := a.o.Input(ctx)
	if errors.Is(err, io.EOF) {
		return null, nil
	}
	return encode(line, err)
}

// printedChunk is how much of a stream one call reads, in bytes.
const printedChunk = 256 << 10

// readPrinted returns a part of a stream of the session's last run; it is empty at
// the end.
func (a *API) readPrinted(name string, offset int64) ([]byte, error) {
	stream, ok := a.o.Printed[name]
	if !ok {
		return nil, fmt.Errorf("the last run has left no %q", text.Bound(name, 40))
	}
	if offset < 0 {
		return nil, fmt.Errorf("the offset %d is negative", offset)
	}
	chunk := make([]byte, printedChunk)
	n, err := stream.ReadAt(chunk, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if onFile, ok := errors.AsType[*fs.PathError](err); ok {
		err = onFile.Err // its path on the host is none of the code's business
	}
	return chunk[:n], err
}

var null = json.RawMessage("null")

// encode turns a value into JSON, unless there is an error. An empty list is a
// list, not null.
func encode(v any, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(v)
	if err == nil && string(body) == "null" {
		body = []byte("[]")
	}
	return body, err
}

// textList reads a list of texts, such as names, within bounds.
func textList(raw json.RawMessage) ([]string, error) {
	list, err := signature.ParseList(raw)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &texts[i]); err != nil {
			return nil, fmt.Errorf("item %d is not a text", i)
		}
	}
	return texts, nil
}

var _ runner.Host = (*API)(nil)
