package policy

import "testing"

// TestLimitsHoldInAPlan, and a plan takes nothing from other runs.
func TestLimitsHoldInAPlan(t *testing.T) {
	s := Server{Name: "s", Alias: "s"}
	write, read := Tool{Name: "write", Alias: "write"}, Tool{Name: "read", Alias: "read", ReadOnly: true}
	for name, tt := range map[string]struct{ policy, want string }{
		"a run":              {"[servers.s]\ncallsPerRun = 2", `[servers.s] callsPerRun = 2: this run has called server "s" 2 times already`},
		"a run, one tool":    {"[servers.s.tools.write]\ncallsPerRun = 2", `[servers.s.tools.write] callsPerRun = 2: this run has called "write" of server "s" 2 times already`},
		"a minute":           {"[servers.s]\ncallsPerMinute = 2", `[servers.s] callsPerMinute = 2: the plan of this run calls server "s" 2 times already`},
		"a minute of a tool": {"[default.tools.write]\ncallsPerMinute = 2", `callsPerMinute = 2: the plan of this run calls "write" of server "s" 2 times already`},
	} {
		p := parsePolicy(t, tt.policy)
		run := p.NewEnforcer()
		for range 2 {
			if err := run.Authorize(t.Context(), Call{Server: s, Tool: write, Planned: true}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		wantErr(t, run.Authorize(t.Context(), Call{Server: s, Tool: write, Planned: true}), tt.want)
		other := p.NewEnforcer()
		for range 2 {
			if err := other.Authorize(t.Context(), Call{Server: s, Tool: write}); err != nil {
				t.Errorf("%s: another run after the plan: %v", name, err)
			}
		}
	}
	// Calls that a plan makes count with those that it only plans.
	run := parsePolicy(t, "[servers.s]\ncallsPerMinute = 2").NewEnforcer()
	if err := run.Authorize(t.Context(), Call{Server: s, Tool: write, Planned: true}); err != nil {
		t.Error(err)
	}
	if err := run.Authorize(t.Context(), Call{Server: s, Tool: read}); err != nil {
		t.Error(err)
	}
	wantErr(t, run.Authorize(t.Context(), Call{Server: s, Tool: read}), `[servers.s] callsPerMinute = 2: server "s" was called`)
	wantErr(t, run.Authorize(t.Context(), Call{Server: s, Planned: true}), `[servers.s] callsPerMinute = 2: server "s" was called`)
}
