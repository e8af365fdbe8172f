package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// callParams are the parameters of all methods; each takes what it needs.
type callParams struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	// Args and Named are there instead of Arguments if they are to be bound to
	// the tool's parameters, as the arguments of a function. They are split
	// within bounds: a frame has room for millions of empty ones.
	Args   json.RawMessage `json:"args"`
	Named  json.RawMessage `json:"named"`
	Tools  json.RawMessage `json:"tools"`
	URI    string          `json:"uri"`
	Query  string          `json:"query"`
	Limit  int             `json:"limit"`
	Detail string          `json:"detail"`
	Name   string          `json:"name"`
	Source string          `json:"source"`
	Data   []byte          `json:"data"`  // a picture
	Drawn  bool            `json:"drawn"` // another of the same comes, or it was said why not
}

// withSchema reports whether docs are to have more than a summary.
func (p callParams) withSchema() bool { return p.Detail == "full" || p.Detail == "schema" }

// A toolInfo is a tool as list_tools and describe_server show it.
type toolInfo struct {
	Name        string          `json:"name"`
	Alias       string          `json:"alias"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

// A serverDescription is what describe_server gives.
type serverDescription struct {
	Name        string     `json:"name"`
	Alias       string     `json:"alias"`
	Description string     `json:"description,omitempty"`
	Dir         string     `json:"cwd,omitempty"`
	Tools       []toolInfo `json:"tools"`
}

// refusal is an error of a call that says which server and tool it is about.
type refusal struct {
	callError
}

// refuse makes a refusal of an error of one tool.
func refuse(err error, server, tool string) refusal {
	kind := ""
	var wrong *signature.ArgumentError
	if errors.As(err, &wrong) {
		kind = wrong.Kind
	}
	return refusal{callError{Message: err.Error(), Server: server, Tool: tool, Kind: kind}}
}

func (r refusal) Error() string { return r.Message }

// asCallError gives the form in which an error goes to the runner.
func asCallError(err error) callError {
	var r refusal
	if errors.As(err, &r) {
		return r.callError
	}
	return callError{Message: err.Error()}
}

// call carries out what the code asked for. Whatever it asks, it only gets
// what its run may have: calls to tools need a grant, documentation does not.
func (t *talk) call(ctx context.Context, method string, raw json.RawMessage) (json.RawMessage, error) {
	var p callParams
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &p); err != nil {
			return nil, fmt.Errorf("reading the parameters of %s: %w", text.Bound(method, 40), err)
		}
	}
	switch method {
	case "call_tool":
		return t.callTool(ctx, p)
	case "list_servers":
		names := []string{}
		for _, st := range t.s.upstreams() {
			names = append(names, st.Name)
		}
		return json.Marshal(names)
	case "describe_servers":
		return json.Marshal(t.s.upstreams())
	case "list_tools":
		return encode(t.tools(ctx, p.Server))
	case "describe_server":
		return encode(t.describe(ctx, p.Server))
	case "query_tool_docs":
		docs, err := t.docs(ctx, p)
		return encode(asDetailed(docs, p.Detail), err)
	case "search_tool_docs":
		docs, err := t.search(ctx, p)
		return encode(asDetailed(docs, p.Detail), err)
	case "tool_signature":
		return encode(t.signature(ctx, p.Server, p.Tool))
	case "stubs":
		return encode(t.stubs(ctx, p))
	case "list_resources", "list_resource_templates", "list_prompts", "read_resource", "get_prompt":
		return t.resourceOrPrompt(ctx, method, p)
	case "display":
		return json.RawMessage("null"), t.display(p.Name, p.Data, p.Drawn)
	case "save_tool", "saved_tools", "saved_source", "remove_tool", "export_tools", "saved_failed":
		return t.savedTool(method, p, raw)
	}
	return nil, fmt.Errorf("the host knows no method %q", text.Bound(method, 40))
}

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

// policyNames is a server as policies know it.
func policyNames(s config.Server) policy.Server {
	return policy.Server{Name: s.Name, Alias: s.Alias}
}

// grantedServer finds a server that the run may use, or says why it may not.
func (t *talk) grantedServer(name, tool string) (config.Server, error) {
	server, err := t.s.o.Upstreams.Lookup(name)
	if err != nil {
		return server, refuse(err, name, tool)
	}
	if !t.plan.granted[server.Name] {
		err = fmt.Errorf("server %q is not granted to this run: call run_python with %q in its servers argument", server.Name, server.Name)
		return server, refuse(err, server.Name, tool)
	}
	if err := t.policy.ServerDenied(policyNames(server)); err != nil { // before it is started to read a signature
		return server, refuse(err, server.Name, tool)
	}
	return server, nil
}

func (t *talk) callTool(ctx context.Context, p callParams) (json.RawMessage, error) {
	server, err := t.grantedServer(p.Server, p.Tool)
	if err != nil {
		return nil, err
	}
	if p.Arguments == nil {
		if p.Arguments, err = t.bind(ctx, server.Name, p); err != nil {
			return nil, refuse(err, server.Name, p.Tool)
		}
	}
	result, err := t.effects.call(ctx, t.s.o.Upstreams, mcpproxy.CallRequest{
		Server: server.Name, Tool: p.Tool, Arguments: p.Arguments, Progress: t.progressOf(server.Name, p.Tool), Run: t.policy,
	})
	if err != nil {
		return nil, refuse(err, server.Name, p.Tool)
	}
	return result, nil
}

// bind makes the arguments of a call what its tool's signature says. Only if
// that of the running server does not fit either are they wrong.
func (t *talk) bind(ctx context.Context, server string, p callParams) (json.RawMessage, error) {
	args, err := signature.ParseList(p.Args)
	if err != nil {
		return nil, err
	}
	named, err := signature.ParseArguments(p.Named)
	if err != nil {
		return nil, err
	}
	var bound json.RawMessage
	for _, live := range []bool{false, true} {
		tool, sig, err := t.s.o.Upstreams.Signature(ctx, server, p.Tool, live)
		if err != nil {
			return nil, err
		}
		bound, err = sig.Bind(tool.Alias, args, named)
		if err == nil || live {
			return bound, err
		}
	}
	return bound, nil
}

// A toolSignature is what help() and inspect.signature show of a tool.
type toolSignature struct {
	*signature.Signature
	Description string `json:"description,omitempty"`
	Doc         string `json:"doc"`
}

func (t *talk) signature(ctx context.Context, server, name string) (*toolSignature, error) {
	tool, sig, err := t.s.o.Upstreams.Signature(ctx, server, name, false)
	if err != nil {
		return nil, refuse(err, server, name)
	}
	return &toolSignature{sig, tool.Description, sig.Doc(tool.Alias)}, nil
}

// stubs writes the tools of a server as a .pyi file.
func (t *talk) stubs(ctx context.Context, p callParams) (string, error) {
	names, err := textList(p.Tools)
	if err != nil {
		return "", refuse(fmt.Errorf("reading the names of tools: %w", err), p.Server, "")
	}
	return t.s.o.Upstreams.Stubs(ctx, p.Server, names)
}

// asDetailed takes from the docs what the detail does not ask for.
func asDetailed(docs []mcpproxy.ToolDoc, detail string) []mcpproxy.ToolDoc {
	if detail == "schema" {
		for i := range docs {
			docs[i].Signature = ""
		}
	}
	return docs
}

func (t *talk) tools(ctx context.Context, server string) ([]toolInfo, error) {
	if t.meansSaved(server) {
		return t.savedTools(), nil
	}
	tools, err := t.s.o.Upstreams.Tools(ctx, server)
	if err != nil {
		return nil, err
	}
	out := make([]toolInfo, len(tools))
	for i, tool := range tools {
		out[i] = toolInfo{tool.Name, tool.Alias, tool.Description, tool.InputSchema}
	}
	return out, nil
}

func (t *talk) describe(ctx context.Context, name string) (*serverDescription, error) {
	if t.meansSaved(name) {
		return &serverDescription{Name: name, Alias: name, Description: "functions that earlier runs saved", Tools: t.savedTools()}, nil
	}
	server, err := t.s.o.Upstreams.Lookup(name)
	if err != nil {
		return nil, err
	}
	tools, err := t.tools(ctx, server.Name)
	if err != nil {
		return nil, err
	}
	return &serverDescription{server.Name, server.Alias, server.Description, server.Dir, tools}, nil
}

var _ Upstreams = (*mcpproxy.Proxy)(nil)
