package policy

import "testing"

// TestWhatDidNotGoOutIsGivenBack, to the run and to the minute that all runs share.
func TestWhatDidNotGoOutIsGivenBack(t *testing.T) {
	for _, planned := range []bool{false, true} {
		p := parsePolicy(t, "[servers.s]\ncallsPerRun = 2\n[servers.s.tools.t]\ncallsPerMinute = 1")
		run, other := p.NewEnforcer(), p.NewEnforcer()
		c := Call{Server: Server{Name: "s"}, Tool: Tool{Name: "t"}, Planned: planned}
		giveBack, err := run.Reserve(c)
		if err != nil {
			t.Fatal(err)
		}
		wantErr(t, run.Authorize(t.Context(), c), "callsPerMinute = 1")
		if err := other.Authorize(t.Context(), c); (err != nil) == planned {
			t.Errorf("planned: %v: another run: %v", planned, err)
		}
		giveBack()
		if !planned {
			if err := other.Authorize(t.Context(), c); err != nil {
				t.Errorf("another run, once it is given back: %v", err)
			}
			continue
		}
		if err := run.Authorize(t.Context(), Call{Server: c.Server, Tool: Tool{Name: "u"}}); err != nil {
			t.Error(err)
		}
	}
}

// TestNothingIsReservedWhereNothingIsAllowed, whoever forgot to check.
func TestNothingIsReservedWhereNothingIsAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"[servers.s]\ndeny = '*'":  `[servers.s] deny = "*": using server "s" is not allowed`,
		"[servers.s]\nallow = []":  `[servers.s] allow = []: using server "s" is not allowed`,
		"[servers.s]\nallow = [\n": "nothing may be called until this is fixed",
	} {
		run := Load(writePolicy(t, text), true, nil).NewEnforcer()
		_, err := run.Reserve(Call{Server: Server{Name: "s"}, Tool: Tool{Name: "t"}})
		wantErr(t, err, want)
	}
}

// TestALimitIsReachedOnce, however many calls look at it before one of them counts.
func TestALimitIsReachedOnce(t *testing.T) {
	run := parsePolicy(t, "[servers.s]\ncallsPerRun = 1").NewEnforcer()
	c := Call{Server: Server{Name: "s"}, Tool: Tool{Name: "t"}}
	for range 2 {
		if _, err := run.Check(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := run.Reserve(c); err != nil {
		t.Fatal(err)
	}
	if _, err := run.Reserve(c); err == nil {
		t.Error("two calls are counted where one is allowed")
	}
}
