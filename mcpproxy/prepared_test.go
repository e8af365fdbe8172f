package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

func policyOf(t *testing.T, text string) *policy.Policy {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return policy.Load(file, true, nil)
}

// TestPreparedIsNotSent until it is: a real process notes what reaches it.
func TestPreparedIsNotSent(t *testing.T) {
	notes := filepath.Join(t.TempDir(), "notes")
	p := proxyFor(t, Options{}, fake(t, "FAKE_NOTES", notes))
	for _, live := range []bool{false, true} {
		prepared, err := p.Prepare(t.Context(), "fake", Want{Method: CallTool, Name: "get_pid", Live: live}) // an alias
		if err != nil || prepared.Sent() || prepared.Facts().Name != "get-pid" || len(lines(notes)) != 0 {
			t.Fatalf("%v; sent: %v, notes %q", err, prepared.Sent(), lines(notes))
		}
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := prepared.Send(canceled, json.RawMessage("{}"), nil, nil); err == nil || prepared.Sent() {
			t.Errorf("a call that was cancelled before: %v; sent: %v", err, prepared.Sent())
		}
	}
	prepared, err := p.Prepare(t.Context(), "fake", Want{Method: CallTool, Name: "refuse"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = prepared.Send(t.Context(), json.RawMessage("{}"), nil, nil)
	mcptest.WantError(t, err, "bad arguments")
	if !prepared.Sent() {
		t.Error("what the server has refused was not sent")
	}
	if _, err := p.Prepare(t.Context(), "fake", Want{Method: CallTool, Name: "no_such_tool"}); err == nil {
		t.Error("a tool that there is not is prepared")
	}
}

// TestWhatHasChangedIsNotSent: neither to another server than the one that was decided on,
// nor as a call of another tool.
func TestWhatHasChangedIsNotSent(t *testing.T) {
	s, set := givenServer(t)
	set(echoTool("Returns its arguments"))
	p := proxyFor(t, pinsIn(t.TempDir()), s)
	prepare := func(method, name string) *Prepared {
		t.Helper()
		prepared, err := p.Prepare(t.Context(), "fake", Want{Method: method, Name: name, Live: true})
		if err != nil {
			t.Fatal(err)
		}
		return prepared
	}
	wantChanged := func(what string, prepared *Prepared) {
		t.Helper()
		if _, err := prepared.Send(t.Context(), json.RawMessage("{}"), nil, nil); !errors.Is(err, ErrChanged) || prepared.Sent() {
			t.Errorf("%s: %v; sent: %v", what, err, prepared.Sent())
		}
	}
	call := prepare(CallTool, "echo")
	set(echoTool("Sends them away"))
	if _, err := p.Refresh(t.Context(), "fake"); err != nil {
		t.Fatal(err)
	}
	wantChanged("another definition", call)
	before := p.current().config.Servers[0]
	for _, method := range []string{CallTool, ReadResource, GetPrompt, ListResources} {
		name := "echo"
		if method == ListResources {
			name = ""
		}
		asked := prepare(method, name)
		other := before
		other.Env = maps.Clone(other.Env)
		other.Env["MORE"] = "1"
		p.Update(config.Config{Servers: []config.Server{other}})
		wantChanged(method+" of another entry", asked)
		p.Update(config.Config{})
		wantChanged(method+" of an entry that is gone", asked)
		p.Update(config.Config{Servers: []config.Server{before}})
	}
}
