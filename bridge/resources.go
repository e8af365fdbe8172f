package bridge

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolcell/toolcell/mcpproxy/signature"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// maxURI bounds the URI of a resource, in bytes.
const maxURI = 64 << 10

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
	if err := t.policy.AuthorizeServer(policyNames(server)); err != nil {
		return nil, refuse(err, server.Name, "")
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
	given, err := signature.ParseArguments(p.Arguments)
	if err != nil {
		return nil, refuse(fmt.Errorf("getting prompt %q: %w", text.Bound(p.Name, 80), err), server.Name, "")
	}
	args := make(map[string]string, len(given))
	for _, a := range given {
		var value string
		if err := json.Unmarshal(a.Value, &value); err != nil {
			return nil, refuse(fmt.Errorf("getting prompt %q: its argument %q is not a text", text.Bound(p.Name, 80), text.Bound(a.Name, 80)), server.Name, "")
		}
		args[a.Name] = value
	}
	if err := t.policy.AuthorizeServer(policyNames(server)); err != nil {
		return nil, refuse(err, server.Name, "")
	}
	answer, err := t.s.o.Upstreams.GetPrompt(ctx, server.Name, p.Name, args)
	if err != nil {
		return nil, refuse(err, server.Name, "")
	}
	return answer, nil
}
