package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// A modernClient speaks the protocol of 2026-07-28 by hand: it says in each request what
// it can do, and is asked in results.
type modernClient struct {
	*rawClient
	h *host
	e env
}

// What a client says of elicitation.
const (
	showsForms   = `{"elicitation":{"form":{}}}`
	opensURLs    = `{"elicitation":{"url":{}}}`
	showsNothing = `{}`
)

// A retry is what a request adds that comes back with an answer.
type retry struct {
	State     string                     `json:"requestState,omitempty"`
	Responses map[string]json.RawMessage `json:"inputResponses,omitempty"`
}

// chosen is a retry with an answer to our question.
func chosen(state, choice string) retry {
	return retry{state, map[string]json.RawMessage{"approval": fmt.Appendf(nil, `{"action":"accept","content":{"choice":%q}}`, choice)}}
}

// A modernReply is what such a client gets.
type modernReply struct {
	ID    int
	Error *struct {
		Code    int
		Message string
	}
	Result struct {
		ResultType        string
		RequestState      string
		InputRequests     map[string]json.RawMessage
		IsError           bool
		Content           []struct{ Text string }
		StructuredContent struct {
			Status   string
			Approval struct{ ID string }
		}
	}
	line string
}

// begin sends a call.
func (c *modernClient) begin(t *testing.T, capabilities string, args map[string]any, r retry) {
	t.Helper()
	c.sent++
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.sent, "method": "tools/call", "params": struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
		Meta      map[string]any `json:"_meta"`
		retry
	}{"run_python", args, map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "raw", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": json.RawMessage(capabilities),
	}, r}})
	if err != nil {
		t.Fatal(err)
	}
	c.send(t, string(body))
}

// get receives an answer.
func (c *modernClient) get(t *testing.T) (r modernReply) {
	t.Helper()
	r.line = c.receive(t)
	if err := json.Unmarshal([]byte(r.line), &r); err != nil {
		t.Fatalf("%v: %s", err, r.line)
	}
	return r
}

// ask calls and waits for the answer.
func (c *modernClient) ask(t *testing.T, capabilities string, args map[string]any, r retry) modernReply {
	t.Helper()
	c.begin(t, capabilities, args, r)
	return c.get(t)
}

// asks fails the test unless the result asks, and returns its state.
func (r modernReply) asks(t *testing.T) (state string) {
	t.Helper()
	if r.Error != nil || r.Result.ResultType != "input_required" || len(r.Result.InputRequests) != 1 || r.Result.RequestState == "" || len(r.Result.Content) > 0 {
		t.Fatalf("it does not ask: %s", r.line)
	}
	return r.Result.RequestState
}

// needsApproval fails the test unless the user has to be asked elsewhere, and returns
// the session to come back with.
func (r modernReply) needsApproval(t *testing.T) (id string) {
	t.Helper()
	if r.Error != nil || len(r.Result.InputRequests) > 0 || r.Result.RequestState != "" || r.Result.StructuredContent.Status != "approval_needed" || r.Result.IsError {
		t.Fatalf("it is not approval_needed: %s", r.line)
	}
	return r.Result.StructuredContent.Approval.ID
}

// refused fails the test unless the state was refused.
func (r modernReply) refused(t *testing.T) {
	t.Helper()
	if r.Error == nil || r.Error.Code != -32602 || !strings.Contains(r.Error.Message, "requestState is not valid") {
		t.Fatalf("the state was taken: %s", r.line)
	}
}

// prints fails the test unless the run has ended with this output.
func (r modernReply) prints(t *testing.T, want string) {
	t.Helper()
	if r.Error != nil || r.Result.IsError || len(r.Result.Content) == 0 || strings.Split(r.Result.Content[0].Text, "\nnote: ")[0] != want {
		t.Fatalf("want %s, got %s", want, r.line)
	}
}

// creates is a call whose code creates issues, and prints what came of each.
func creates(n int) map[string]any {
	return map[string]any{"servers": []string{"github"}, "code": fmt.Sprintf(`
from mcp import runtime
all = []
for i in range(%d):
    try: all.append((await mcp_github.create_issue(title=f"t{i}")).title)
    except runtime.MCPError as e: all.append(str(e))
print(*all, sep=", ")`, n)}
}

// TestRequestStateIsGuarded does with states what a client should not, and what it may.
func TestRequestStateIsGuarded(t *testing.T) {
	one := creates(1)
	for name, try := range map[string]func(t *testing.T, c *modernClient){
		"tampered": func(t *testing.T, c *modernClient) {
			state := c.ask(t, showsForms, one, retry{}).asks(t)
			id, sealed, _ := strings.Cut(state, ".")
			flip := func(s string, at int) string {
				other := map[bool]string{true: "B", false: "A"}[s[at] == 'A']
				return s[:at] + other + s[at+1:]
			}
			for _, bad := range []string{
				flip(state, 5), id + "." + flip(sealed, 0), id + "." + flip(sealed, len(sealed)/2), id + "." + flip(sealed, len(sealed)-2),
				state[:len(state)-4], state + "AAAA", state + ".", id + ".", id, sealed, "." + sealed, "x", strings.Repeat("A", 1<<16),
			} {
				c.ask(t, showsForms, one, chosen(bad, "call")).refused(t)
			}
			c.ask(t, showsForms, one, chosen(state, "call")).prints(t, "t0")
		},
		"expired": func(t *testing.T, c *modernClient) {
			state := c.ask(t, showsForms, one, retry{}).asks(t)
			waitFor(t, "the end of the time to answer", func() bool { return questions(t, c.h, c.e)[0].State == "expired" })
			r := c.ask(t, showsForms, one, chosen(state, "call"))
			// The result is kept as long as an answer is waited for, and then what it was.
			if r.Result.StructuredContent.Status != "cancelled" || !strings.Contains(r.line, "no answer came in time") && !strings.Contains(r.line, "calls done: none") {
				t.Errorf("got %s", r.line)
			}
		},
		"replayed": func(t *testing.T, c *modernClient) {
			two := creates(2)
			first := c.ask(t, showsForms, two, retry{}).asks(t)
			second := c.ask(t, showsForms, two, chosen(first, "call")).asks(t)
			c.ask(t, showsForms, two, chosen(first, "call")).refused(t)
			c.ask(t, showsForms, two, chosen(second, "deny")).prints(t, "t0, denied by the user")
			for _, state := range []string{first, second} {
				if r := c.ask(t, showsForms, two, chosen(state, "call")); r.Result.StructuredContent.Status != "cancelled" || !strings.Contains(r.line, "the result of this run was given already") {
					t.Errorf("after the end: %s", r.line)
				}
			}
		},
		"of another run": func(t *testing.T, c *modernClient) {
			a, b := c.ask(t, showsForms, one, retry{}).asks(t), c.ask(t, showsForms, one, retry{}).asks(t)
			_, sealed, _ := strings.Cut(a, ".")
			id, _, _ := strings.Cut(b, ".")
			c.ask(t, showsForms, one, chosen(id+"."+sealed, "call")).refused(t)
			c.ask(t, showsForms, one, chosen(a, "deny")).prints(t, "denied by the user")
			c.ask(t, showsForms, one, chosen(b, "call")).prints(t, "t0")
		},
		"of another connection": func(t *testing.T, c *modernClient) {
			state := c.ask(t, showsForms, one, retry{}).asks(t)
			other := &modernClient{rawClient: c.h.startRaw(t, c.e)}
			other.ask(t, showsForms, one, chosen(state, "call")).refused(t)
			c.ask(t, showsForms, one, chosen(state, "call")).prints(t, "t0")
		},
		"with another request": func(t *testing.T, c *modernClient) {
			state := c.ask(t, showsForms, one, retry{}).asks(t)
			for name, value := range map[string]any{"code": "print('other')", "servers": []string{"github", "odd"}, "timeout": 7, "session": "s"} {
				other := map[string]any{"code": one["code"], "servers": one["servers"]}
				other[name] = value
				c.ask(t, showsForms, other, chosen(state, "call")).refused(t)
			}
			c.ask(t, showsForms, one, chosen(state, "call")).prints(t, "t0")
		},
		"without an answer": func(t *testing.T, c *modernClient) {
			state := c.ask(t, showsForms, one, retry{}).asks(t)
			for name, responses := range map[string]string{
				"none": `null`, "others": `{"x":{"action":"accept","content":{"choice":"call"}}}`, "no choice": `{"approval":{"action":"accept","content":{}}}`,
				"two values": `{"approval":{"action":"accept","content":{"choice":"call","run":true}}}`,
			} {
				r := retry{State: state}
				if err := json.Unmarshal([]byte(responses), &r.Responses); err != nil {
					t.Fatal(err)
				}
				fresh := c.ask(t, showsForms, one, r).asks(t)
				if fresh == state {
					t.Errorf("%s: the state is not a new one", name)
				}
				c.ask(t, showsForms, one, chosen(state, "call")).refused(t)
				state = fresh
			}
			c.ask(t, showsForms, one, chosen(state, "call")).prints(t, "t0")
		},
		"cancelled": func(t *testing.T, c *modernClient) {
			state := c.ask(t, showsForms, one, retry{}).asks(t)
			cancel := map[string]json.RawMessage{"approval": json.RawMessage(`{"action":"cancel"}`)}
			id := c.ask(t, showsForms, one, retry{state, cancel}).needsApproval(t)
			c.ask(t, showsForms, one, chosen(state, "call")).refused(t)
			again := c.ask(t, showsForms, map[string]any{"code": "", "session": id}, retry{}).asks(t)
			c.ask(t, showsForms, map[string]any{"code": "", "session": id}, chosen(again, "call")).prints(t, "t0")
		},
		"at once": func(t *testing.T, c *modernClient) {
			state := c.ask(t, showsForms, one, retry{}).asks(t)
			const n = 8
			for range n {
				c.begin(t, showsForms, one, chosen(state, "call"))
			}
			taken := 0
			for range n {
				switch r := c.get(t); {
				case r.Error == nil && r.Result.StructuredContent.Status == "success":
					r.prints(t, "t0")
					taken++
				case r.Error == nil: // it came after the result
					if !strings.Contains(r.line, "the result of this run was given already") {
						t.Errorf("got %s", r.line)
					}
				default:
					r.refused(t)
				}
			}
			if taken != 1 {
				t.Errorf("taken %d times", taken)
			}
		},
		"with more answers than questions": func(t *testing.T, c *modernClient) {
			r := chosen(c.ask(t, showsForms, one, retry{}).asks(t), "call")
			r.Responses["other"] = json.RawMessage(`{"action":"accept","content":{"choice":"deny"}}`)
			c.ask(t, showsForms, one, r).prints(t, "t0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			more := env{}
			if name == "expired" {
				more["TOOLCELL_APPROVAL_TIMEOUT"] = "1s"
			}
			try(t, modern(t, more))
		})
	}
}

// modern starts a server that asks about each issue.
func modern(t *testing.T, more env) *modernClient {
	t.Helper()
	h, e := firstHost(t), asks(t, "[servers.github]\nask = 'writes'", more)
	return &modernClient{h.startRaw(t, e), h, e}
}

// TestResultsAskWhatTheClientShows: each request says what its client can do.
func TestResultsAskWhatTheClientShows(t *testing.T) {
	one, two := creates(1), creates(2)
	for name, try := range map[string]func(t *testing.T, c *modernClient){
		"nothing": func(t *testing.T, c *modernClient) {
			c.ask(t, showsNothing, one, retry{}).needsApproval(t)
		},
		"addresses only": func(t *testing.T, c *modernClient) {
			c.ask(t, opensURLs, one, retry{}).needsApproval(t)
		},
		"first forms, then nothing": func(t *testing.T, c *modernClient) {
			state := c.ask(t, showsForms, two, retry{}).asks(t)
			id := c.ask(t, showsNothing, two, chosen(state, "call")).needsApproval(t)
			c.ask(t, showsNothing, two, chosen(state, "call")).refused(t)
			c.denies(t, id)
			c.ask(t, showsNothing, map[string]any{"code": "", "session": id}, retry{}).prints(t, "t0, denied by the user")
		},
		"first nothing, then forms": func(t *testing.T, c *modernClient) {
			back := map[string]any{"code": "", "session": c.ask(t, showsNothing, two, retry{}).needsApproval(t)}
			state := c.ask(t, showsForms, back, retry{}).asks(t)
			c.ask(t, showsForms, two, chosen(state, "call")).refused(t) // it is the state of the second call
			state = c.ask(t, showsForms, back, chosen(state, "call")).asks(t)
			c.ask(t, showsForms, back, chosen(state, "call")).prints(t, "t0, t1")
		},
		"more forms than clients take": func(t *testing.T, c *modernClient) {
			twelve, r := creates(12), retry{}
			for range 9 {
				r = chosen(c.ask(t, showsForms, twelve, r).asks(t), "call")
			}
			id := c.ask(t, showsForms, twelve, r).needsApproval(t)
			c.denies(t, id)
			id = c.ask(t, showsForms, map[string]any{"code": "", "session": id}, retry{}).needsApproval(t)
			if _, errs, code := c.h.run(t, c.e, "approvals", "deny", id, "--stop"); code != 0 {
				t.Fatal(errs)
			}
			r10 := c.ask(t, showsForms, map[string]any{"code": "", "session": id}, retry{})
			if r10.Result.StructuredContent.Status != "cancelled" || strings.Count(r10.Result.Content[0].Text, "github.create_issue") == 0 {
				t.Errorf("got %s", r10.line)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			try(t, modern(t, nil))
		})
	}
}

// denies answers a question in a terminal.
func (c *modernClient) denies(t *testing.T, id string) {
	t.Helper()
	if _, errs, code := c.h.run(t, c.e, "approvals", "deny", id); code != 0 {
		t.Fatal(errs)
	}
}
