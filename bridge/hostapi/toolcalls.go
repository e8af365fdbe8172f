package hostapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/room"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// maxURI bounds the URI of a resource, in bytes.
const maxURI = 64 << 10

// policyNames is a server as policies know it.
func policyNames(s config.Server) policy.Server {
	return policy.Server{Name: s.Name, Alias: s.Alias}
}

// grantedServer finds a server that the run may use, or returns why it may not.
// It is called before anything that starts the server.
func (a *API) grantedServer(name, tool string) (config.Server, error) {
	server, err := a.upstreams.Lookup(name)
	if err != nil {
		return server, callError(err, name, tool)
	}
	if !a.granted[server.Name] {
		err = fmt.Errorf("server %q is not granted to this run: call run_python with %q in its servers argument", server.Name, server.Name)
		return server, callError(err, server.Name, tool)
	}
	if err := a.policy.ServerDenied(policyNames(server)); err != nil {
		return server, callError(err, server.Name, tool)
	}
	a.used.add(server.Name)
	return server, nil
}

func (a *API) callTool(ctx context.Context, p params) (json.RawMessage, error) {
	arrived := a.approach(p.More)
	defer arrived()
	server, err := a.grantedServer(p.Server, p.Tool)
	if err != nil {
		return nil, err
	}
	if p.Arguments, err = a.checkedArguments(ctx, server.Name, p); err != nil {
		return nil, callError(err, server.Name, p.Tool)
	}
	result, err := a.callAllowed(ctx, server, mcpproxy.CallRequest{
		Server: server.Name, Tool: p.Tool, Arguments: p.Arguments, Progress: a.progress.of(server.Name, p.Tool), Run: a.policy,
	}, p.number, arrived)
	if err != nil {
		return nil, callError(err, server.Name, p.Tool)
	}
	return result, nil
}

// checkedArguments returns the arguments of a call: those of a function bound to its
// tool's signature, or those that call_tool was given, whose values alone are checked.
// It rejects them only if they do not fit the running server's signature either.
func (a *API) checkedArguments(ctx context.Context, server string, p params) (json.RawMessage, error) {
	if p.Unchecked && p.Arguments != nil {
		return p.Arguments, nil
	}
	var arguments json.RawMessage
	for _, live := range []bool{false, true} {
		tool, sig, err := a.upstreams.Signature(ctx, server, p.Tool, live)
		if err != nil {
			return nil, err
		}
		if a.planner != nil { // a stand-in for a number is a text
			sig = sig.Except(func(value json.RawMessage) bool { return a.planner.usesResult(ctx, value) })
		}
		arguments, err = p.bind(ctx, tool.Alias, sig)
		if err == nil || live {
			return arguments, err
		}
	}
	return arguments, nil
}

// bind returns the arguments as they fit a signature. It ends with ctx.
func (p params) bind(ctx context.Context, tool string, sig *signature.Signature) (json.RawMessage, error) {
	size := len(p.Arguments) + len(p.Args) + len(p.Named)
	return room.Decode(ctx, "binding the arguments of a call", size, room.Arguments, func() (json.RawMessage, error) {
		if p.Arguments != nil {
			return sig.Fit(tool, p.Arguments)
		}
		args, err := signature.ParseList(p.Args)
		if err != nil {
			return nil, err
		}
		named, err := signature.ParseArguments(p.Named)
		if err != nil {
			return nil, err
		}
		return sig.Bind(tool, args, named)
	})
}

// liveList gives a list that only the running server has. It needs a grant as a
// call does, and counts as one: each is a request with the user's token.
func (a *API) liveList(ctx context.Context, p params, method string, list func(context.Context, string) (json.RawMessage, error)) (json.RawMessage, error) {
	server, err := a.grantedServer(p.Server, "")
	if err != nil {
		return nil, err
	}
	if ctx, err = a.authorizeRead(ctx, p.number, server, method, nil); err != nil {
		return nil, callError(err, server.Name, "")
	}
	answer, err := list(ctx, server.Name)
	return answer, serverError(err, server.Name)
}

// readResource reads a resource, which needs a grant as a call does.
func (a *API) readResource(ctx context.Context, p params) (json.RawMessage, error) {
	server, err := a.grantedServer(p.Server, "")
	if err != nil {
		return nil, err
	}
	if p.URI == "" || len(p.URI) > maxURI {
		return nil, callError(fmt.Errorf("reading a resource of server %q: the URI has %d bytes, the most is %d", server.Name, len(p.URI), maxURI), server.Name, "")
	}
	uri, err := canonical(map[string]string{"uri": p.URI})
	if err == nil && a.planner.needsResult(ctx, uri) {
		answer, err := a.planRead(ctx, p.number, server, "resources/read", uri)
		return answer, serverError(err, server.Name)
	}
	a.planner.decide(p.number)
	if err == nil {
		ctx, err = a.authorizeRead(ctx, p.number, server, "resources/read", uri)
	}
	if err != nil {
		return nil, callError(err, server.Name, "")
	}
	answer, err := a.upstreams.ReadResource(a.withElicit(ctx), server.Name, p.URI)
	return answer, serverError(err, server.Name)
}

// canonical writes what is asked for as the arguments of tools are written.
func canonical(v any) (json.RawMessage, error) {
	body, err := encode(v, nil)
	if err != nil {
		return nil, err
	}
	return rawjson.Canonical(body)
}

// getPrompt gets a prompt, which needs a grant as a call does.
func (a *API) getPrompt(ctx context.Context, p params) (json.RawMessage, error) {
	server, err := a.grantedServer(p.Server, "")
	if err != nil {
		return nil, err
	}
	args, err := promptArguments(p.Arguments)
	if err != nil {
		return nil, callError(fmt.Errorf("getting prompt %q: %w", text.Bound(p.Name, 80), err), server.Name, "")
	}
	asked, err := canonical(map[string]any{"name": p.Name, "arguments": args})
	if err == nil && a.planner.needsResult(ctx, asked) {
		answer, err := a.planRead(ctx, p.number, server, "prompts/get", asked)
		return answer, serverError(err, server.Name)
	}
	a.planner.decide(p.number)
	if err == nil {
		ctx, err = a.authorizeRead(ctx, p.number, server, "prompts/get", asked)
	}
	if err != nil {
		return nil, callError(err, server.Name, "")
	}
	answer, err := a.upstreams.GetPrompt(a.withElicit(ctx), server.Name, p.Name, args)
	return answer, serverError(err, server.Name)
}

// promptArguments reads the arguments of a prompt, which are texts.
func promptArguments(raw json.RawMessage) (map[string]string, error) {
	given, err := signature.ParseArguments(raw)
	if err != nil {
		return nil, err
	}
	args := make(map[string]string, len(given))
	for _, a := range given {
		var value string
		if err := json.Unmarshal(a.Value, &value); err != nil {
			return nil, fmt.Errorf("its argument %q is not a text", text.Bound(a.Name, 80))
		}
		args[a.Name] = value
	}
	return args, nil
}
