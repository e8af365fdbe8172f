package gate

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
)

// bind makes the effect of a request: what is decided on, and what is sent.
func (g *Gate) bind(ctx context.Context, p *mcpproxy.Prepared, r Request) (e Effect, err error) {
	e.Facts, e.asked = p.Facts(), r.Name
	switch r.Method {
	case mcpproxy.CallTool:
		args := r.Arguments
		if !r.Unchecked || args == nil {
			if args, err = g.bindTool(ctx, p, r); err != nil {
				return e, err
			}
		}
		if e.Args, err = mcpproxy.CanonicalArguments(ctx, args); err != nil {
			return e, fmt.Errorf("calling tool %q of server %q: %w", e.Facts.Name, e.Facts.Server.Name, err)
		}
		e.Bytes = e.Args
	case mcpproxy.ReadResource:
		e.Bytes, err = canonical(map[string]string{"uri": r.Name})
	case mcpproxy.GetPrompt:
		args, err := promptArguments(r.Arguments)
		if err != nil {
			return e, fmt.Errorf("getting prompt %q: %w", text.Bound(r.Name, 80), err)
		}
		if len(args) > 0 {
			if e.Args, err = canonical(args); err != nil {
				return e, err
			}
		}
		e.Bytes, err = canonical(map[string]any{"name": r.Name, "arguments": args})
		return e, err
	}
	return e, err
}

// bindTool returns the arguments of a call: those of a function bound to its tool's
// signature, or those that call_tool was given, whose values alone are checked.
func (g *Gate) bindTool(ctx context.Context, p *mcpproxy.Prepared, r Request) (json.RawMessage, error) {
	sig, tool := p.Signature(), p.Facts().Tool.Alias
	if g.o.Command {
		tool = r.Server + "." + tool
	}
	if g.o.Plan { // a placeholder for a number is a text
		sig = sig.Except(func(value json.RawMessage) bool { return g.planner.usesResult(ctx, value) })
	}
	return r.bindTo(ctx, tool, sig)
}

// bindTo returns the arguments as they fit a signature. It ends with ctx.
func (r Request) bindTo(ctx context.Context, tool string, sig *signature.Signature) (json.RawMessage, error) {
	size := len(r.Arguments) + len(r.Args) + len(r.Named)
	return memory.Decode(ctx, "binding the arguments of a call", size, memory.Arguments, func() (json.RawMessage, error) {
		if r.Arguments != nil {
			return sig.Fit(tool, r.Arguments)
		}
		args, err := signature.ParseList(r.Args)
		if err != nil {
			return nil, err
		}
		named, err := signature.ParseArguments(r.Named)
		if err != nil {
			return nil, err
		}
		if r.Typed {
			named = sig.Read(named)
		}
		return sig.Bind(tool, args, named)
	})
}

// canonical writes what is asked for as the arguments of tools are written.
func canonical(v any) (json.RawMessage, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return rawjson.Canonical(body)
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
