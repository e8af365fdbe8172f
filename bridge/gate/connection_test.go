package gate

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// A conversation is a client that stays connected while its runs begin and end.
type conversation struct {
	client   *consent.Client
	queue    *consent.Queue
	upstream *mcpproxy.Proxy
	policy   *policy.Enforcer
	journal  *journal
	answer   consent.Choice
}

func newConversation(t *testing.T, up *mcpproxy.Proxy, rules string) *conversation {
	return &conversation{
		client: &consent.Client{Lasting: true, Taint: &consent.Taint{}}, queue: consent.NewQueue(consent.Options{}), upstream: up, policy: policyIn(t, rules),
		answer: consent.ForCall,
	}
}

// do makes a request in a run of its own, and returns what the user was asked.
func (c *conversation) do(t *testing.T, r Request) []consent.Question {
	t.Helper()
	user := newUserOf(t, c.queue, c.client, func(consent.Question) consent.Answer { return consent.Answer{Choice: c.answer} })
	o := Options{Upstreams: c.upstream, Granted: granted, Policy: c.policy, Taint: c.client.Taint, Asker: user.Asker}
	if c.journal != nil {
		o.Record = c.journal.run
	}
	if _, err := New(o).Do(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	return user.asked
}

// asks has a request asked about or not, and returns the choices.
func (c *conversation) asks(t *testing.T, what string, r Request, want bool) (choices []consent.Choice) {
	t.Helper()
	asked := c.do(t, r)
	if (len(asked) > 0) != want {
		t.Errorf("%s: asked is %d times, want %t", what, len(asked), want)
	}
	for _, q := range asked {
		choices = q.Choices()
	}
	return choices
}

var (
	write      = requests["tools/call"]
	writeOther = Request{Method: mcpproxy.CallTool, Server: "up", Name: "write", Arguments: json.RawMessage(`{"n":2}`), Unchecked: true}
	read       = requests["a reading tool"]
)

// TestAnApprovalForTheConnectionEndsWithPrivateData: once some was read, an open server is asked about.
func TestAnApprovalForTheConnectionEndsWithPrivateData(t *testing.T) {
	c := newConversation(t, newUpstream(t).Proxy, "[servers.up]\nask = '*'\nopen = true")
	for _, choice := range []consent.Choice{consent.ForConnection, consent.SameForConnection} {
		c.answer = choice
		c.asks(t, "the first call", write, true)
		c.asks(t, "the next run", write, false)
		if err := c.queue.Revoke(c.queue.Questions()[len(c.queue.Questions())-1].ID); err != nil {
			t.Fatal(err)
		}
	}
	c.answer = consent.ReadsForConnection
	c.asks(t, "the first read", read, true)
	c.answer = consent.ForConnection
	c.asks(t, "a call", write, true)
	c.client.Taint.Add("bank.accounts")
	c.answer = consent.ForCall
	for _, r := range []Request{write, write, read, read} {
		if choices := c.asks(t, "after private data was read: "+r.Name, r, true); slices.ContainsFunc(choices, consent.Choice.LastsForConnection) {
			t.Errorf("offered is %v", choices)
		}
	}
}

// TestAnApprovalForTheConnectionIsOfWhatWasAsked: other arguments, another entry, another definition.
func TestAnApprovalForTheConnectionIsOfWhatWasAsked(t *testing.T) {
	u := newUpstream(t)
	c := newConversation(t, u.Proxy, "[servers.up]\nask = '*'")
	c.answer = consent.SameForConnection
	c.asks(t, "the first call", write, true)
	c.asks(t, "the same arguments, in other words", Request{Method: write.Method, Server: "up", Name: "write", Arguments: json.RawMessage(`{"n":1}`), Unchecked: true}, false)
	c.answer = consent.ForConnection
	c.asks(t, "other arguments", writeOther, true)
	c.asks(t, "the tool with any arguments", Request{Method: write.Method, Server: "up", Name: "write", Arguments: json.RawMessage(`{"n":3}`), Unchecked: true}, false)
	u.changeEntry()
	c.answer = consent.ForCall
	c.asks(t, "another entry", writeOther, true)
	c.asks(t, "another entry, the same arguments", write, true)
}

// TestReadsOfARuleAreAllowedTogether: tools, resources and prompts, and nothing that writes.
func TestReadsOfARuleAreAllowedTogether(t *testing.T) {
	c := newConversation(t, newUpstream(t, "read2").Proxy, "[servers.up]\nask = '*'")
	c.answer = consent.ReadsForConnection
	c.asks(t, "a read", read, true)
	c.asks(t, "another tool that reads", Request{Method: mcpproxy.CallTool, Server: "up", Name: "read2"}, false)
	for _, kind := range []string{"resources/read", "prompts/get", "resources/list"} {
		c.asks(t, kind, requests[kind], false)
	}
	c.answer = consent.ForCall
	if choices := c.asks(t, "a write", write, true); slices.Contains(choices, consent.ReadsForConnection) {
		t.Errorf("of a write is offered %v", choices)
	}
	c.policy = policyIn(t, "[servers.up]\nask = 'read*'")
	c.asks(t, "a read that another rule asks about", read, true)
}

// TestNothingLastsOfCallsThatAreAskedByThemselves: by a condition, or since a definition has changed.
func TestNothingLastsOfCallsThatAreAskedByThemselves(t *testing.T) {
	var server *mcp.Server
	define := func(description string, reads bool) {
		server.AddTool(&mcp.Tool{Name: "look", Description: description, InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	}
	for name, tt := range map[string]struct {
		rules   string
		change  func()
		offered bool
	}{
		"nothing changes":                     {"ask = '*'", func() {}, true},
		"a condition":                         {"ask = '*'\n[[servers.up.tools.look.when]]\npath = 'n'\nop = '!='\nvalue = 7", func() {}, false},
		"another description":                 {"ask = '*'", func() { define("new", false) }, true}, // a definition of its own
		"another description, which is asked": {"ask = '*'\npins = 'ask'", func() { define("new", false) }, false},
		"a hint that was not accepted":        {"ask = 'writes'", func() { define("", true) }, false},
	} {
		p := bridgetest.Servers{"up": {"look": nil}}.Proxy(t, bridgetest.Options{Tool: func(s *mcp.Server, _ string) bool {
			server = s
			define("", false)
			return true
		}})
		c := newConversation(t, p, "[servers.up]\n"+tt.rules)
		look := Request{Method: mcpproxy.CallTool, Server: "up", Name: "look", Arguments: json.RawMessage(`{"n":1}`), Unchecked: true}
		if !strings.Contains(tt.rules, "when") {
			c.answer = consent.ForConnection
		}
		c.asks(t, name+", before", look, true)
		tt.change()
		if _, err := p.Refresh(t.Context(), "up"); err != nil {
			t.Fatal(err)
		}
		c.answer = consent.ForCall
		want := name != "nothing changes"
		choices := c.asks(t, name, look, want)
		if want && slices.ContainsFunc(choices, consent.Choice.LastsForConnection) != tt.offered {
			t.Errorf("%s: offered is %v", name, choices)
		}
	}
}

// TestALaterRunNamesTheQuestionThatAllowedItsCall, and the revocation is on record.
func TestALaterRunNamesTheQuestionThatAllowedItsCall(t *testing.T) {
	c := newConversation(t, newUpstream(t).Proxy, "[servers.up]\nask = '*'")
	c.answer = consent.ForConnection
	asked := c.do(t, write)
	c.journal = newJournal(t, "")
	c.do(t, writeOther)
	if lines := c.journal.lines(t, false); len(asked) != 1 || lines[0]["kind"] != "call.start" || lines[0]["question"] != asked[0].ID {
		t.Errorf("on record is %v", lines)
	}
	if err := c.queue.Revoke(asked[0].ID); err != nil {
		t.Fatal(err)
	}
	q, _ := c.queue.Question(asked[0].ID)
	if err := RecordRevoked(c.journal.run, q); err != nil {
		t.Fatal(err)
	}
	if got := c.journal.summary(t); !strings.HasSuffix(got, "ask revoked\n") {
		t.Errorf("on record is\n%s", got)
	}
}
