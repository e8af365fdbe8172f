package main

import (
	"testing"

	"github.com/toolcell/toolcell/bridge/run"
)

// TestHintsSayWhatToTypeInAShell: a result speaks to a model, which has arguments and a
// user.
func TestHintsSayWhatToTypeInAShell(t *testing.T) {
	for told, want := range map[string]string{
		"the sandbox has no network, so a retry fails too: call one of the user's MCP servers instead": "the sandbox has no network, so a retry fails too: allow the host in [network] of the policy, and add --server https://HOST",
		`the call did not ask for this host: add "https://api.test:8443" to servers`:                   "the call did not ask for this host: add --server https://api.test:8443",
		`toolcell refused network requests: add "https://x.test" to the servers of the call`:           "toolcell refused network requests: add --server https://x.test",
		"there is no network. The user can set TOOLCELL_IMAGE to an image that has it":                 "there is no network. --image can name an image that has it",
		`add "x.test" to [network] allow`: `add "x.test" to [network] allow`,
	} {
		if got := (script{}).explain(&run.Result{Hint: told}).Hint; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	const denied = `MCPError: server "to do" is not granted to this run: call run_python with "to do" in its servers argument`
	if got := (script{}).explain(&run.Result{Error: denied}); got.Hint != "to allow it: --server 'to do'" || got.Error != denied {
		t.Errorf("got %+v", got)
	}
}
