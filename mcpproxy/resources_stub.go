package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
)

var errNoResources = errors.New("resources and prompts are not there yet")

// ListResources returns the resources of a server.
func (p *Proxy) ListResources(context.Context, string) (json.RawMessage, error) {
	return nil, errNoResources
}

// ListResourceTemplates returns the resource templates of a server.
func (p *Proxy) ListResourceTemplates(context.Context, string) (json.RawMessage, error) {
	return nil, errNoResources
}

// ReadResource reads a resource.
func (p *Proxy) ReadResource(context.Context, string, string) (json.RawMessage, error) {
	return nil, errNoResources
}

// ListPrompts returns the prompts of a server.
func (p *Proxy) ListPrompts(context.Context, string) (json.RawMessage, error) {
	return nil, errNoResources
}

// GetPrompt returns a prompt with its arguments put in.
func (p *Proxy) GetPrompt(context.Context, string, string, map[string]string) (json.RawMessage, error) {
	return nil, errNoResources
}
