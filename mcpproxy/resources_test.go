package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// offer answers requests for resources and prompts.
func (f *fakeServer) offer(r fakeRequest) {
	n, _ := strconv.Atoi(r.Params.Cursor)
	switch mode := os.Getenv("FAKE_PAGES"); r.Method {
	case "resources/list":
		switch {
		case mode == "endless":
			f.reply(r, fmt.Sprintf(`{"resources":[],"nextCursor":"%d"}`, n+1))
		case mode == "huge":
			f.reply(r, `{"resources":[{"uri":"x:`+strings.Repeat("x", 17<<20)+`"}]}`)
		case mode == "odd":
			f.reply(r, `{"resources":{"a":1}}`)
		case n < 2:
			f.reply(r, fmt.Sprintf(`{"resources":[{"uri":"fake://%d","size":9007199254740993,"unknown":[1.50]}, 7],"nextCursor":"%d"}`, n, n+1))
		default:
			f.reply(r, `{"resources":[{"uri":"fake://last"}],"nextCursor":"2"}`) // a cursor that was there before
		}
	case "resources/templates/list":
		f.fail(r, -32601, "method not found")
	case "resources/read":
		if r.Params.URI == "fake://hang" {
			return
		}
		if r.Params.URI != "fake://1" {
			f.fail(r, -32002, "no such resource")
			return
		}
		f.reply(r, `{"contents":[{"uri":"fake://1","mimeType":"text/plain","text":"one","extra":9007199254740993}]}`)
	case "prompts/list":
		f.reply(r, `{"prompts":[{"name":"ask","arguments":[{"name":"topic","required":true}]}]}`)
	case "prompts/get":
		f.reply(r, fmt.Sprintf(`{"messages":[{"role":"user","content":{"type":"text","text":%q}}]}`, r.Params.Name+string(r.Params.Arguments)))
	}
}

func TestResourcesAndPromptsPassAsTheServerWroteThem(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t, "FAKE_OFFERS", `,"resources":{},"prompts":{}`))
	for _, tt := range []struct {
		name, want string
		ask        func() (json.RawMessage, error)
	}{
		{
			"resources, all pages",
			`[{"uri":"fake://0","size":9007199254740993,"unknown":[1.50]},{"uri":"fake://1","size":9007199254740993,"unknown":[1.50]},{"uri":"fake://last"}]`,
			func() (json.RawMessage, error) { return p.read(t.Context(), "fake", ListResources, "", nil) },
		},
		{"templates the server does not know of", `[]`, func() (json.RawMessage, error) { return p.read(t.Context(), "fake", ListTemplates, "", nil) }},
		{
			"a resource", `{"contents":[{"uri":"fake://1","mimeType":"text/plain","text":"one","extra":9007199254740993}]}`,
			func() (json.RawMessage, error) { return p.read(t.Context(), "fake", ReadResource, "fake://1", nil) },
		},
		{
			"prompts", `[{"name":"ask","arguments":[{"name":"topic","required":true}]}]`,
			func() (json.RawMessage, error) { return p.read(t.Context(), "fake", ListPrompts, "", nil) },
		},
		{
			"a prompt", `{"messages":[{"role":"user","content":{"type":"text","text":"ask{\"topic\":\"tea\"}"}}]}`,
			func() (json.RawMessage, error) {
				return p.read(t.Context(), "fake", GetPrompt, "ask", json.RawMessage(`{"topic":"tea"}`))
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.ask()
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v; want %s", got, err, tt.want)
			}
		})
	}
	_, err := p.read(t.Context(), "fake", ReadResource, "fake://none", nil)
	mcptest.WantError(t, err, `reading resource "fake://none" of server "fake"`, "no such resource")
	_, err = p.read(t.Context(), "fake", ReadResource, "", nil)
	mcptest.WantError(t, err, "the URI has 0 bytes")
	_, err = p.read(t.Context(), "fkae", ListPrompts, "", nil)
	mcptest.WantError(t, err, `no server "fkae"`)
}

func TestServerWithoutResourcesListsNoneAndReadsNone(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	for name, list := range map[string]func() (json.RawMessage, error){
		"resources": func() (json.RawMessage, error) { return p.read(t.Context(), "fake", ListResources, "", nil) },
		"templates": func() (json.RawMessage, error) { return p.read(t.Context(), "fake", ListTemplates, "", nil) },
		"prompts":   func() (json.RawMessage, error) { return p.read(t.Context(), "fake", ListPrompts, "", nil) },
	} {
		if got, err := list(); err != nil || string(got) != "[]" {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	_, err := p.read(t.Context(), "fake", ReadResource, "fake://1", nil)
	mcptest.WantError(t, err, `reading resource "fake://1" of server "fake": the server has no resources`)
	_, err = p.read(t.Context(), "fake", GetPrompt, "ask", nil)
	mcptest.WantError(t, err, `getting prompt "ask" of server "fake": the server has no prompts`)
}

func TestListsOfResourcesAreBounded(t *testing.T) {
	for mode, want := range map[string]string{
		"endless": "more than 1000 pages", "huge": "16 MiB", "odd": `"resources" must be a list`,
	} {
		t.Run(mode, func(t *testing.T) {
			p := proxyFor(t, Options{}, fake(t, "FAKE_OFFERS", `,"resources":{}`, "FAKE_PAGES", mode))
			_, err := p.read(t.Context(), "fake", ListResources, "", nil)
			mcptest.WantError(t, err, `listing the resources of server "fake"`, want)
			mustCall(t, p, "echo", `{}`) // nothing else is hurt
		})
	}
}

func TestReadingAResourceTakesNoLongerThanACall(t *testing.T) {
	s := fake(t, "FAKE_OFFERS", `,"resources":{}`)
	s.CallTimeout = 100 * time.Millisecond
	p := proxyFor(t, Options{CallTimeout: time.Hour}, s)
	if _, err := p.Tools(t.Context(), "fake"); err != nil { // it runs
		t.Fatal(err)
	}
	_, err := p.read(t.Context(), "fake", ReadResource, "fake://hang", nil)
	mcptest.WantError(t, err, `reading resource "fake://hang" of server "fake": no answer within 100ms`)
	if strings.Contains(err.Error(), "context") || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an answer that does not come is %v", err)
	}
}
