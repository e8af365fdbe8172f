package bridge

import (
	"context"
	"encoding/json"
	"fmt"
)

// Bounds on what the code may ask of a server's resources and prompts.
const (
	maxURI        = 64 << 10
	maxPromptArgs = 1000
)

// resourceOrPrompt answers what concerns a server's resources and prompts.
// What there is may be read of any server, as its tools may; reading one takes
// a grant, as a call does.
func (t *talk) resourceOrPrompt(ctx context.Context, method string, p callParams) (json.RawMessage, error) {
	up := t.s.o.Upstreams
	list := up.ListResources
	switch method {
	case "list_resource_templates":
		list = up.ListResourceTemplates
	case "list_prompts":
		list = up.ListPrompts
	case "read_resource":
		return t.readResource(ctx, p)
	case "get_prompt":
		return t.getPrompt(ctx, p)
	}
	answer, err := list(ctx, p.Server)
	if err != nil {
		return nil, refuse(err, p.Server, "")
	}
	return answer, nil
}

func (t *talk) readResource(ctx context.Context, p callParams) (json.RawMessage, error) {
	server, err := t.grantedServer(p.Server, "")
	if err != nil {
		return nil, err
	}
	if p.URI == "" || len(p.URI) > maxURI {
		return nil, refuse(fmt.Errorf("reading a resource of server %q: the URI has %d bytes, the most is %d", server.Name, len(p.URI), maxURI), server.Name, "")
	}
	answer, err := t.s.o.Upstreams.ReadResource(ctx, server.Name, p.URI)
	if err != nil {
		return nil, refuse(err, server.Name, "")
	}
	return answer, nil
}

func (t *talk) getPrompt(ctx context.Context, p callParams) (json.RawMessage, error) {
	server, err := t.grantedServer(p.Server, "")
	if err != nil {
		return nil, err
	}
	var args map[string]string
	if len(p.Arguments) > 0 {
		if err := json.Unmarshal(p.Arguments, &args); err != nil {
			return nil, refuse(fmt.Errorf("getting prompt %q: its arguments are not texts: %w", boundText(p.Name, 80), err), server.Name, "")
		}
	}
	if len(args) > maxPromptArgs {
		return nil, refuse(fmt.Errorf("getting prompt %q: there are more than %d arguments", boundText(p.Name, 80), maxPromptArgs), server.Name, "")
	}
	answer, err := t.s.o.Upstreams.GetPrompt(ctx, server.Name, p.Name, args)
	if err != nil {
		return nil, refuse(err, server.Name, "")
	}
	return answer, nil
}
