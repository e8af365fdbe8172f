package policy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/requirement"
)

// TestFaultWhileReadingThePolicyAllowsNothing, and what no policy was read for is not
// allowed either.
func TestFaultWhileReadingThePolicyAllowsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[default]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var broken *Run
	t.Run("fault", func(t *testing.T) {
		contain.Inject(t, func(at string) bool { return at == "reading the policy" })
		broken = Load(file, false, nil).NewRun()
	})
	for name, r := range map[string]*Run{"panicked": broken, "zero": {}} {
		call := Call{Server: Server{Name: "bank"}, Tool: Tool{Name: "pay"}}
		if r.Authorize(call) == nil || r.ServerDenied(call.Server) == nil || r.AuthorizeServer(call.Server) == nil {
			t.Errorf("%s: a call may go out", name)
		}
		if r.policy == nil {
			continue
		}
		if _, err := r.GrantPackages([]requirement.Requirement{{Name: "six"}}); err == nil {
			t.Errorf("%s: packages are granted", name)
		}
		if _, err := r.GrantNetwork([]string{"https://example.com"}); err == nil {
			t.Errorf("%s: hosts are granted", name)
		}
	}
	if err := Load(filepath.Join(t.TempDir(), "none.toml"), false, nil).NewRun().Authorize(Call{Server: Server{Name: "bank"}}); err != nil {
		t.Errorf("without a policy: %v", err)
	}
}
