package hostapi

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// A toolInfo is a tool as list_tools and describe_server show it.
type toolInfo struct {
	Name        string          `json:"name"`
	Alias       string          `json:"alias"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

// A serverDescription is what describe_server returns.
type serverDescription struct {
	Name        string     `json:"name"`
	Alias       string     `json:"alias"`
	Description string     `json:"description,omitempty"`
	Dir         string     `json:"cwd,omitempty"`
	Tools       []toolInfo `json:"tools"`
}

// A toolSignature is what help() and inspect.signature show of a tool.
type toolSignature struct {
	*signature.Signature
	Description string `json:"description,omitempty"`
	Doc         string `json:"doc"`
}

// documentTime bounds how long a document may wait for a server while it is made.
// The tools are known by then, and other answers wait meanwhile.
const documentTime = 100 * time.Millisecond

// document waits for the tools of a server, if one is named. The document about them, which
// can have tens of MiB, is made later, when it can be sent.
func (a *API) document(ctx context.Context, server string, made func(context.Context) (any, error)) (runner.Answer, error) {
	if err := a.notDenied(server); err != nil {
		return runner.Answer{}, err
	}
	if server != "" && !a.isSaved(server) {
		if err := a.o.Upstreams.AwaitTools(ctx, server); err != nil {
			return runner.Answer{}, a.o.Gate.Shown(server, err)
		}
	}
	return later(func() (any, error) {
		ctx, cancel := context.WithTimeout(ctx, documentTime)
		defer cancel()
		return made(ctx)
	}), nil
}

// later is an answer that is made when it can be sent.
func later(made func() (any, error)) runner.Answer {
	return runner.Answer{Make: func() (json.RawMessage, error) { return encode(made()) }}
}

func (a *API) serverNames() []string {
	names := []string{}
	for _, st := range a.o.Upstreams.Usable() {
		names = append(names, st.Name)
	}
	return names
}

// servers returns the servers that code can see, without the files that they are
// from and where they run: the host is none of the code's business.
func (a *API) servers() []mcpproxy.ServerStatus {
	all := a.o.Upstreams.Usable()
	for i := range all {
		all[i].Error = withoutFolders(all[i].Error, append(all[i].Also, all[i].Source))
		all[i].Source, all[i].Also, all[i].Where = "", nil, ""
		if err := a.o.Gate.Denied(all[i].Name, all[i].Alias); err != nil {
			all[i].Status, all[i].Error = "denied", err.Error()
		}
	}
	return all
}

// withoutFolders names the files in a text without their folders.
func withoutFolders(txt string, files []string) string {
	for _, file := range files {
		if file != "" {
			txt = strings.ReplaceAll(txt, file, filepath.Base(file))
		}
	}
	return txt
}

// notDenied returns an error if the policy denies all of a server. Then not even
// its documentation is there: to have it, the server might have to be started.
func (a *API) notDenied(name string) error {
	if name == "" || a.isSaved(name) {
		return nil
	}
	server, err := a.o.Upstreams.Lookup(name)
	if err != nil {
		return nil //nolint:nilerror // each method says it in its own way
	}
	if err := a.o.Gate.Denied(server.Name, server.Alias); err != nil {
		return runner.NewCallError(err, server.Name, "")
	}
	a.o.Gate.NoteUsed(server.Name)
	return nil
}

// isSaved reports whether a server's name stands for the saved tools. A server
// that is really called so comes first.
func (a *API) isSaved(server string) bool {
	if server != savedServer {
		return false
	}
	_, err := a.o.Upstreams.Lookup(server)
	return err != nil
}

func (a *API) tools(ctx context.Context, server string) ([]toolInfo, error) {
	if a.isSaved(server) {
		return a.saved.infos(), nil
	}
	tools, err := a.o.Upstreams.Tools(ctx, server)
	if err != nil {
		return nil, a.o.Gate.Shown(server, err)
	}
	out := make([]toolInfo, len(tools))
	for i, tool := range tools {
		out[i] = toolInfo{tool.Name, tool.Alias, tool.Description, tool.ShownSchema()}
	}
	return out, nil
}

func (a *API) describe(ctx context.Context, name string) (*serverDescription, error) {
	if a.isSaved(name) {
		return &serverDescription{Name: name, Alias: name, Description: "functions that earlier runs saved", Tools: a.saved.infos()}, nil
	}
	server, err := a.o.Upstreams.Lookup(name)
	if err != nil {
		return nil, err
	}
	tools, err := a.tools(ctx, server.Name)
	if err != nil {
		return nil, err
	}
	return &serverDescription{server.Name, server.Alias, server.Description, server.Dir, tools}, nil
}

func (a *API) signature(ctx context.Context, server, name string) (*toolSignature, error) {
	if err := a.working.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer a.working.Release(1)
	tool, sig, err := a.o.Upstreams.Signature(ctx, server, name)
	if err != nil {
		return nil, runner.NewCallError(a.o.Gate.Shown(server, err), server, name)
	}
	return &toolSignature{sig, tool.Description, sig.Doc(tool.Alias)}, nil
}

// docs returns the documentation of a server's tools, or of the saved ones.
func (a *API) docs(ctx context.Context, p runner.Params) ([]mcpproxy.ToolDoc, error) {
	if a.isSaved(p.Server) {
		return a.saved.docs(p.Tool, p.Full())
	}
	docs, err := a.o.Upstreams.Docs(ctx, p.Server, p.Tool, p.Full())
	return docs, a.o.Gate.Shown(p.Server, err)
}

// search finds tools of servers, and saved ones beside them.
func (a *API) search(ctx context.Context, p runner.Params) (runner.Answer, error) {
	if err := a.working.Acquire(ctx, 1); err != nil {
		return runner.Answer{}, err
	}
	defer a.working.Release(1)
	allowed := func(name, alias string) bool {
		return a.o.Gate.Denied(name, alias) == nil
	}
	found, problems, err := a.o.Upstreams.Search(ctx, p.Query, p.Limit, p.Full(), allowed)
	if err != nil {
		return runner.Answer{}, err
	}
	a.left.set(problems)
	for _, doc := range found {
		a.o.Gate.NoteUsed(doc.Server)
	}
	return later(func() (any, error) {
		return withDetail(a.saved.found(p.Query, found, p.Limit, p.Full()), p.Detail), nil
	}), nil
}

// withDetail takes from the docs what the detail does not ask for.
func withDetail(docs []mcpproxy.ToolDoc, detail string) []mcpproxy.ToolDoc {
	if detail == "schema" {
		for i := range docs {
			docs[i].Signature = ""
		}
	}
	return docs
}
