// Package hostapi answers the requests of code in a sandbox to the host:
// servers, their documentation and tools, saved tools, pictures.
//
// What has an effect goes to the gate, and the errors of everything pass it. Here is what
// has none: documentation, pictures, input, saved tools. What code asks is bounded.
package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// Upstreams are the user's other MCP servers. *mcpproxy.Proxy is one.
type Upstreams interface {
	gate.Upstreams
	Servers() []mcpproxy.ServerStatus
	// AwaitTools waits until the tools of a server are known. Then Tools and Docs need not
	// wait.
	AwaitTools(ctx context.Context, server string) error
	Tools(ctx context.Context, server string) ([]catalog.Tool, error)
	Docs(ctx context.Context, server, tool string, full bool) ([]mcpproxy.ToolDoc, error)
	Search(ctx context.Context, query string, limit int, full bool, allowed func(name, alias string) bool) ([]mcpproxy.ToolDoc, []config.Problem, error)
	Signature(ctx context.Context, server, tool string) (catalog.Tool, *signature.Signature, error)
	// KnownTools returns the tools of a server, nil if they are not known.
	KnownTools(server string) []catalog.Tool
	// SetElicits says how the client can ask its user, before servers are started for it.
	SetElicits(can mcpproxy.ElicitCapabilities)
	// PinNotes returns what a run that used these servers should tell of changes to their
	// tools.
	PinNotes(servers []string) []string
}

// UsableServers returns the servers that code can see. Discovery gives the
// servers that it left out no alias.
func UsableServers(up Upstreams) []mcpproxy.ServerStatus {
	return slices.DeleteFunc(up.Servers(), func(st mcpproxy.ServerStatus) bool { return st.Alias == "" })
}

// Options configure the API of one run. Upstreams, Gate, Saved and Display are
// required.
type Options struct {
	Upstreams Upstreams
	Gate      *gate.Gate
	Policy    *policy.Run // of the gate, for notes about its rules
	Saved     savedtools.Store
	// Display adds a picture, as artifacts.Run.Display does.
	Display func(name string, data []byte, rasterFollows bool) error
	// Printed are the streams of the session's last run that its code may read.
	Printed map[string]io.ReaderAt
	// Input returns the next line of standard input; it is nil if the code does
	// not read that through the host. ErrInterrupted is Ctrl-C instead of a line.
	Input func(ctx context.Context) (string, error)
	// First reports whether a note is given for the first time; nil if all are.
	First func(note string) bool
	Log   *slog.Logger // nothing is logged if nil
}

// An API answers the calls of one run: it is the runner.Host of the run. It is
// safe for concurrent use.
type API struct {
	upstreams Upstreams
	gate      *gate.Gate
	policy    *policy.Run
	display   func(name string, data []byte, rasterFollows bool) error
	saved     savedTools
	printed   map[string]io.ReaderAt
	input     func(ctx context.Context) (string, error)
	log       *slog.Logger
	left      leftOut
	silent    atomic.Pointer[mcpproxy.SilentError]
	working   *semaphore.Weighted // bounds calls that go on after the run's end: they compute or write files
}

// maxWorking is how many of those calls work at once. A run that ends waits for them.
const maxWorking = 4

// New makes the API of one run.
func New(o Options) *API {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.First == nil {
		o.First = func(string) bool { return true }
	}
	return &API{
		upstreams: o.Upstreams, gate: o.Gate, policy: o.Policy, display: o.Display, printed: o.Printed, input: o.Input, log: o.Log,
		saved: savedTools{store: o.Saved, gate: o.Gate, log: o.Log}, left: leftOut{first: o.First},
		working: semaphore.NewWeighted(maxWorking),
	}
}

// Notes returns notes for the caller about the run's requests: servers that a
// search left out, tools that their servers have changed, saved tools that no longer
// work, and those that were replaced.
func (a *API) Notes() []string {
	return slices.Concat(a.left.note(), a.upstreams.PinNotes(a.gate.Used()), a.policyNotes(), a.saved.allNotes())
}

// policyNotes returns, and logs, what in the policy about the servers that were used matches
// no tool, each once.
func (a *API) policyNotes() (notes []string) {
	if !a.policy.NamesTools() {
		return nil
	}
	for _, server := range a.gate.Used() {
		s, err := a.upstreams.Lookup(server)
		if err != nil {
			continue // it was removed meanwhile
		}
		for _, u := range a.policy.UnmatchedTools(gate.KnownTools(s, a.upstreams.KnownTools(server))) {
			if note := "policy: " + u.String(); u.Plain && a.left.first(note) {
				a.log.Warn("a name in the policy matches no tool", "server", server, "section", u.Section, "rule", u.Rule, "meant", u.Meant)
				notes = append(notes, note)
			}
		}
	}
	return notes
}

// Silent returns the server that a call was still waiting for when the run ended,
// since it has not answered after its start; nil if there is none.
func (a *API) Silent() *mcpproxy.SilentError { return a.silent.Load() }

// Call carries out what the code asked for; it implements runner.Host. Whatever
// the code asks, it only gets what its run may have: calls of tools and all that is
// asked of a running server need a grant, documentation does not.
func (a *API) Call(ctx context.Context, number int, method string, raw json.RawMessage) (runner.Answer, error) {
	if !mayBePlanned(method) {
		a.gate.Settled(number)
	}
	defer a.gate.Settled(number)
	err := a.gate.WhyStopped()
	if err == nil && mayBePlanned(method) {
		err = a.gate.CheckPlaceholders(ctx, raw)
	}
	if err != nil {
		return runner.Answer{}, ofStoppedRun(err)
	}
	answer, err := a.answer(ctx, number, method, raw)
	if silent, ok := errors.AsType[*mcpproxy.SilentError](err); ok {
		a.silent.CompareAndSwap(nil, silent)
	}
	return answer, ofStoppedRun(err)
}

// ofStoppedRun marks the error of a call that failed because the run was stopped. A task
// that gets it may live on in the session, and outlive the run.
func ofStoppedRun(err error) error {
	if !errors.Is(err, consent.ErrStopped) && !errors.Is(err, consent.ErrExpired) {
		return err
	}
	e := runner.CallError{Message: err.Error(), Cause: err}
	if known, ok := errors.AsType[*runner.CallError](err); ok {
		e = *known
	}
	e.Stopped = true
	return &e
}

func (a *API) answer(ctx context.Context, number int, method string, raw json.RawMessage) (runner.Answer, error) {
	p, err := readParams(ctx, raw)
	p.number = number
	if wrong, ok := errors.AsType[*runner.CallError](err); ok {
		wrong.Message = text.Bound(method, 40) + "(): " + wrong.Message
		return runner.Answer{}, wrong
	}
	if err != nil {
		return runner.Answer{}, fmt.Errorf("reading the parameters of %s: %w", text.Bound(method, 40), err)
	}
	if p.Derived {
		if err := a.gate.NoteDerived(mayBePlanned(method)); err != nil {
			return runner.Answer{}, err
		}
	}
	if effect := effects[method]; effect != "" {
		result, err := a.do(ctx, effect, p)
		return runner.Answer{JSON: result}, err
	}
	if method == "search_tool_docs" {
		return a.search(ctx, p)
	}
	if method == "read_printed" { // made when it can be sent: many at once would take much memory
		return runner.Answer{Make: func() (json.RawMessage, error) { return encode(a.readPrinted(p.Name, p.Offset)) }}, nil
	}
	if document := a.document(method, p); document != nil {
		return a.answerLater(ctx, p.Server, document)
	}
	result, err := a.call(ctx, method, p, raw)
	return runner.Answer{JSON: result}, err
}

// effects are the methods that get to servers, as MCP calls them.
var effects = map[string]string{
	"call_tool": mcpproxy.CallTool, "read_resource": mcpproxy.ReadResource, "get_prompt": mcpproxy.GetPrompt,
	"list_resources": mcpproxy.ListResources, "list_resource_templates": mcpproxy.ListTemplates, "list_prompts": mcpproxy.ListPrompts,
}

// mayBePlanned reports whether a dry run plans some requests of this method.
func mayBePlanned(method string) bool {
	return method == "call_tool" || method == "read_resource" || method == "get_prompt"
}

// do hands an effect to the gate.
func (a *API) do(ctx context.Context, method string, p params) (json.RawMessage, error) {
	r := gate.Request{
		Method: method, Server: p.Server, Arguments: p.Arguments, Unchecked: p.Unchecked, Args: p.Args, Named: p.Named, More: p.More, Number: p.number,
	}
	switch method {
	case mcpproxy.CallTool:
		r.Name = p.Tool
	case mcpproxy.ReadResource:
		r.Name = p.URI
	case mcpproxy.GetPrompt:
		r.Name = p.Name
	}
	answer, err := a.gate.Do(ctx, r)
	if err == nil {
		return answer, nil
	}
	name, tool := p.Server, ""
	if server, err := a.upstreams.Lookup(p.Server); err == nil {
		name = server.Name
	}
	if method == mcpproxy.CallTool {
		tool = p.Tool
	}
	return nil, callError(err, name, tool)
}

// call answers the methods whose result is made before it can be sent.
func (a *API) call(ctx context.Context, method string, p params, raw json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "display":
		return null, a.display(p.Name, p.Data, p.Drawn)
	case "save_tool", "remove_tool", "saved_source":
		return a.savedTool(ctx, method, p.Name, raw)
	case runner.ReadInput:
		return a.readInput(ctx)
	case "saved_failed":
		a.saved.addFailure(p.Name, p.Source)
		return null, nil
	}
	return a.read(ctx, method, p)
}

// read answers the methods that only read data about servers and tools.
func (a *API) read(ctx context.Context, method string, p params) (json.RawMessage, error) {
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
	if a.input == nil {
		return null, nil
	}
	line, err := a.input(ctx)
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
	stream, ok := a.printed[name]
	if !ok {
		return nil, fmt.Errorf("the last run has left no %q", text.Bound(name, 40))
	}
	chunk := make([]byte, printedChunk)
	n, err := stream.ReadAt(chunk, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return chunk[:n], err
}

var null = json.RawMessage("null")

// encode turns a value into JSON, unless there is an error. An empty list is a
// list, not null.
func encode[T any](v T, err error) (json.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(v)
	if err == nil && string(body) == "null" {
		body = []byte("[]")
	}
	return body, err
}

// callError returns the error of a call as the code gets it.
func callError(err error, server, tool string) error {
	kind := ""
	if wrong, ok := errors.AsType[*signature.ArgumentError](err); ok {
		kind = wrong.Kind
	}
	return &runner.CallError{Message: mcpproxy.ShortOutput(err).Error(), Server: server, Tool: tool, Kind: kind, Cause: err}
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

var (
	_ Upstreams   = (*mcpproxy.Proxy)(nil)
	_ runner.Host = (*API)(nil)
)
