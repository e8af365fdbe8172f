package policy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/requirement"
)

// TestFaultWhileReadingThePolicyAllowsNothing, nor do the nil and the zero value.
func TestFaultWhileReadingThePolicyAllowsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[default]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var broken *Enforcer
	t.Run("fault", func(t *testing.T) {
		contain.Inject(t, func(at string) bool { return at == "reading the policy" })
		broken = Load(file, false, nil).NewEnforcer()
	})
	var none *Policy
	if none.Err() == nil || !none.StrictApprovals() {
		t.Error("what no policy was loaded for is allowed")
	}
	for name, r := range map[string]*Enforcer{"panicked": broken, "zero": {}, "nil": nil, "of a nil policy": none.NewEnforcer()} {
		call := Call{Server: Server{Name: "bank"}, Tool: Tool{Name: "pay"}}
		if r.Authorize(t.Context(), call) == nil || r.ServerDenied(call.Server) == nil || r.AuthorizeServer(call.Server) == nil {
			t.Errorf("%s: a call may go out", name)
		}
		if r.AllowedUnasked(call.Server, call.Tool) {
			t.Errorf("%s: a call may go out unasked", name)
		}
		if private, open := r.Flow(call.Server); !private || !open {
			t.Errorf("%s: data may flow: %v, %v", name, private, open)
		}
		if _, err := r.GrantPackages([]requirement.Requirement{{Name: "six"}}); err == nil {
			t.Errorf("%s: packages are granted", name)
		}
		if _, err := r.GrantNPM(nil); err == nil {
			t.Errorf("%s: npm packages are granted", name)
		}
		if _, err := r.GrantNetwork([]string{"https://example.com"}); err == nil {
			t.Errorf("%s: hosts are granted", name)
		}
	}
	for name, p := range map[string]*Policy{"no file": Load(filepath.Join(t.TempDir(), "none.toml"), false, nil), "none": None()} {
		if err := p.NewEnforcer().Authorize(t.Context(), Call{Server: Server{Name: "bank"}}); err != nil || p.Err() != nil || p.StrictApprovals() {
			t.Errorf("%s: %v, %v", name, err, p.Err())
		}
	}
}
