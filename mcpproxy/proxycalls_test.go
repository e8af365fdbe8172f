package mcpproxy

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

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

// TestCallAsksThePolicyBeforeTheServer calls a real process, which notes what
// reaches it.
func TestCallAsksThePolicyBeforeTheServer(t *testing.T) {
	notes, starts := filepath.Join(t.TempDir(), "notes"), filepath.Join(t.TempDir(), "starts")
	p := proxyFor(t, Options{}, fake(t, "FAKE_NOTES", notes, "FAKE_STARTS", starts))
	call := func(policy, tool string) (sent []string, err error) {
		_, err = p.Call(t.Context(), CallRequest{
			Server: "fake", Tool: tool, Run: policyOf(t, policy).NewRun(),
			Sent: func(t CheckedTool) { sent = append(sent, t.Name) },
		})
		return sent, err
	}
	sent, err := call("[servers.fake]\ndeny = '*'", "echo")
	mcptest.WantError(t, err, `[servers.fake] deny = "*"`)
	if len(sent) != 0 || len(lines(starts)) != 0 {
		t.Errorf("a server that is closed as a whole was started: sent %q, starts %q", sent, lines(starts))
	}
	sent, err = call("[servers.fake]\ndeny = 'crash'", "crash")
	mcptest.WantError(t, err, `[servers.fake] deny = "crash": calling "crash" of server "fake"`)
	if len(sent) != 0 || len(lines(notes)) != 0 {
		t.Errorf("a refused call went out: sent %q, notes %q", sent, lines(notes))
	}
	sent, err = call("[servers.fake]\nallow = 'get_pid'", "get_pid") // an alias
	if err != nil || fmt.Sprint(sent) != "[get-pid]" {
		t.Errorf("sent %q, error %v", sent, err)
	}
	sent, err = call("", "refuse")
	mcptest.WantError(t, err, "bad arguments")
	if fmt.Sprint(sent) != "[refuse]" {
		t.Errorf("sent %q", sent)
	}
	if sent, err = call("", "no_such_tool"); err == nil || len(sent) != 0 {
		t.Errorf("a tool that there is not: sent %q, error %v", sent, err)
	}
}

// TestCallWithoutAPolicyIsRefused: a caller that forgets the run sends nothing.
func TestCallWithoutAPolicyIsRefused(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	_, err := p.Call(t.Context(), CallRequest{
		Server: "fake", Tool: "echo", Sent: func(CheckedTool) { t.Error("it is sent") },
	})
	mcptest.WantError(t, err, "policy was not read")
}
