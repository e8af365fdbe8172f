package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/runcell/runcell/mcpproxy"
)

// callParams are the parameters of all methods; each takes what it needs.
type callParams struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Query     string          `json:"query"`
	Limit     int             `json:"limit"`
	Detail    string          `json:"detail"`
	Name      string          `json:"name"`
	Source    string          `json:"source"`
}

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
			return nil, fmt.Errorf("reading the parameters of %s: %w", boundText(method, 40), err)
		}
	}
	up := t.s.o.Upstreams
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
		tools, err := t.tools(ctx, p.Server)
		return encode(tools, err)
	case "describe_server":
		return encode(t.describe(ctx, p.Server))
	case "query_tool_docs":
		return encode(up.Docs(ctx, p.Server, p.Tool, p.Detail == "full"))
	case "search_tool_docs":
		docs, problems, err := up.Search(ctx, p.Query, p.Limit, p.Detail == "full")
		for _, problem := range problems {
			t.s.o.Log.Debug("searching", "server", problem.Server, "reason", problem.Reason)
		}
		return encode(docs, err)
	case "save_tool":
		return json.RawMessage("null"), t.s.saved.save(p.Name, p.Source)
	}
	return nil, fmt.Errorf("the host knows no method %q", boundText(method, 40))
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

func (t *talk) callTool(ctx context.Context, p callParams) (json.RawMessage, error) {
	server, err := t.s.o.Upstreams.Lookup(p.Server)
	if err != nil {
		return nil, refusal{callError{err.Error(), p.Server, p.Tool}}
	}
	if !t.granted[server.Name] {
		return nil, refusal{callError{
			fmt.Sprintf("server %q is not granted to this run: call run_python with %q in its servers argument", server.Name, server.Name),
			server.Name, p.Tool,
		}}
	}
	result, err := t.effects.call(ctx, t.s.o.Upstreams, mcpproxy.CallRequest{
		Server: server.Name, Tool: p.Tool, Arguments: p.Arguments, Run: t.policy,
	})
	if err != nil {
		return nil, refusal{callError{err.Error(), server.Name, p.Tool}}
	}
	return result, nil
}

func (t *talk) tools(ctx context.Context, server string) ([]toolInfo, error) {
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
