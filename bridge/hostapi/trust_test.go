package hostapi

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// changingServer is a server whose entry and definitions change, and which keeps what the
// user accepts of them.
type changingServer struct {
	oneServer
	entry    *config.Server
	accepted string
	read     []string // the entries that were read from
}

func (c *changingServer) Lookup(string) (config.Server, error) { return *c.entry, nil }

func (c *changingServer) Call(ctx context.Context, r mcpproxy.CallRequest) (mcpproxy.CallResult, error) {
	err := r.Run.Authorize(ctx, policy.Call{
		Server: policy.Server{Name: r.Server}, Identity: c.entry.Fingerprint(), Arguments: r.Arguments, Allowed: r.Allowed,
		Tool: policy.Tool{Name: r.Tool, ReadOnly: c.accepted == "d1", Unaccepted: "it is new", Acceptable: true, Digest: "d1"},
	})
	return mcpproxy.CallResult{JSON: json.RawMessage(`{}`)}, err
}

func (c *changingServer) ReadResource(context.Context, string, string) (json.RawMessage, error) {
	c.read = append(c.read, c.entry.Command)
	return json.RawMessage(`{}`), nil
}

func (c *changingServer) AcceptHint(_, _, digest string) error {
	c.accepted = digest
	return nil
}

// respondent answers each question by a function.
type respondent struct {
	Asker
	ask     func(consent.Call) error
	believe bool
}

func (a respondent) Approach(bool) func()         { return func() {} }
func (a respondent) Granted(consent.Call) bool    { return false }
func (a respondent) Believed(c consent.Call) bool { return a.believe && c.Hint != "" }
func (a respondent) Ask(_ context.Context, c consent.Call, _ func()) error {
	return a.ask(c)
}

func policyIn(t *testing.T, text string) *policy.Run {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return policy.Load(file, true, nil).NewRun()
}

// TestTheUserIsAskedAnewIfTheEntryChangesMeanwhile, for calls and for what is read.
func TestTheUserIsAskedAnewIfTheEntryChangesMeanwhile(t *testing.T) {
	for _, method := range []string{"call_tool", "read_resource"} {
		up := &changingServer{entry: &config.Server{Name: "up", Command: "bank"}}
		var asked []string
		user := respondent{ask: func(consent.Call) error {
			asked = append(asked, up.entry.Command)
			if len(asked) == 1 {
				up.entry = &config.Server{Name: "up", Command: "stranger"}
			}
			return nil
		}}
		api := New(Options{Upstreams: up, Granted: map[string]bool{"up": true}, Policy: policyIn(t, "[servers.up]\nask = '*'"), Asker: user})
		if _, err := ask(t, api, method, json.RawMessage(`{"server":"up","tool":"pay","uri":"x:","arguments":{},"unchecked":true}`)); err != nil {
			t.Fatal(err)
		}
		if len(asked) != 2 || asked[1] != "stranger" {
			t.Errorf("%s: asked about %q, want both entries", method, asked)
		}
		up.entry = &config.Server{Name: "up", Command: "bank"}
		asked = nil
		denied := respondent{ask: func(consent.Call) error {
			if asked = append(asked, "x"); len(asked) > 1 {
				return consent.ErrDenied
			}
			up.entry = &config.Server{Name: "up", Command: "stranger"}
			return nil
		}}
		up.read = nil
		api = New(Options{Upstreams: up, Granted: map[string]bool{"up": true}, Policy: policyIn(t, "[servers.up]\nask = '*'"), Asker: denied})
		if _, err := ask(t, api, method, json.RawMessage(`{"server":"up","tool":"pay","uri":"x:","arguments":{},"unchecked":true}`)); err == nil || len(up.read) > 0 {
			t.Errorf("%s: the other entry got what was allowed of the first: %v, %q", method, err, up.read)
		}
	}
}

// TestTheUserAcceptsAHintWithACall, and only then.
func TestTheUserAcceptsAHintWithACall(t *testing.T) {
	for _, believe := range []bool{true, false} {
		up := &changingServer{entry: &config.Server{Name: "up"}}
		asked := 0
		user := respondent{believe: believe, ask: func(c consent.Call) error {
			if asked++; c.Hint != "d1" {
				t.Errorf("asked about %+v, want the hint of d1", c)
			}
			return nil
		}}
		api := New(Options{Upstreams: up, Granted: map[string]bool{"up": true}, Policy: policyIn(t, "[servers.up]\nask = 'writes'"), Asker: user})
		for range 2 {
			if _, err := ask(t, api, "call_tool", json.RawMessage(`{"server":"up","tool":"pay","arguments":{},"unchecked":true}`)); err != nil {
				t.Fatal(err)
			}
		}
		if want := map[bool]int{true: 1, false: 2}[believe]; asked != want || (up.accepted != "") != believe {
			t.Errorf("accepted: %v: asked %d times, kept %q", believe, asked, up.accepted)
		}
	}
}
