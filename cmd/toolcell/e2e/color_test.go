package e2e

import (
	"regexp"
	"testing"
)

var escapes = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// TestColourOnlyForPeople: on a terminal, and not where the user wants none.
func TestColourOnlyForPeople(t *testing.T) {
	h := firstHost(t)
	args := []string{"doctor", "extra"}
	for name, tt := range map[string]struct {
		e      env
		colour bool
	}{
		"terminal":          {env{"TERM": "xterm"}, true},
		"NO_COLOR is empty": {env{"TERM": "xterm", "NO_COLOR": ""}, true},
		"NO_COLOR":          {env{"TERM": "xterm", "NO_COLOR": "1"}, false},
		"a dumb terminal":   {env{"TERM": "dumb"}, false},
		"no TERM":           {nil, false},
	} {
		p := atTerminal(t, h.command(t, tt.e, args...), 80)
		p.leaves()
		p.sees("takes no arguments")
		if got := escapes.MatchString(p.screen.String()); got != tt.colour {
			t.Errorf("%s: %q", name, p.screen)
		}
	}
	for _, args := range [][]string{{"doctor", "extra"}, {"servers", "list"}, {"images", "list"}} {
		if out, errs, _ := h.run(t, env{"TERM": "xterm"}, args...); escapes.MatchString(out + errs) {
			t.Errorf("%v, in a pipe: %q %q", args, out, errs)
		}
	}
}
