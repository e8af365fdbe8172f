package e2e

import (
	"regexp"
	"strings"
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

// hostileText prints sequences of each kind, and leaves a color on. Each text between
// them comes after what it follows has been written.
const hostileText = `import sys, time
for out in sys.stdout, sys.stderr:
    for part in "\x1b]52;c;", "b3duZWQ=\x07one", "\x1b]0;title\x1b", "\\two", "\x1b[2J\x1b[H\x1b[6n\x1b[3", "1mred", "\u009b2Jthree\a":
        print(end=part, file=out, flush=True)
        time.sleep(0.05)
class Hostile:
    def __repr__(self): return "\x1b]2;title\x07the \x1b[32mvalue"
`

// TestOnlyColorsOfTheCodeReachATerminal: not what sets its clipboard or title or
// makes it answer, in output, results and errors. Into a pipe all of it goes.
func TestOnlyColorsOfTheCodeReachATerminal(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	e := env{"TOOLCELL_IMAGE": "host", "TERM": "xterm", "NO_COLOR": "1"}
	const failing = "\nraise SystemExit('\\x1b]2;title\\x07gone')"
	for name, args := range map[string][]string{
		"result":      {"exec", "-c", hostileText + "Hostile()"},
		"end":         {"exec", "-c", hostileText + failing},
		"error":       {"exec", "-c", hostileText + "\nraise ValueError('\\x1b]2;title\\x07gone')"},
		"output mode": {"exec", "--output", "compact", "-c", hostileText + "Hostile()"},
	} {
		t.Run(name, func(t *testing.T) {
			p := atTerminal(t, h.command(t, e, args...), 80)
			p.leaves()
			p.sees("one")
			checkScreen(t, p.screen.String(), "onetwo\x1b[31mredthree")
			out, errs, _ := h.run(t, e, args...)
			if !strings.Contains(out, "\x1b]52;c;b3duZWQ=\x07") || name != "output mode" && !strings.Contains(errs, "\u009b2J") {
				t.Errorf("into a pipe: %q %q", out, errs)
			}
		})
	}
	p := atPrompt(t, h, nil)
	before := len(p.screen.String())
	p.enters("import sys; _ = sys.stdout.write('\\x1b]52;c;x\\x07\\x1b[6n\\x1b[31mred')\r", "red\x1b[0m")
	p.sees(">>> ")
	if got := p.screen.String()[before:]; strings.Contains(got, "\x1b]52") || strings.Contains(got, "\x1b[6n") {
		t.Errorf("at the prompt: %q", got)
	}
	p.types("\x04")
	p.leaves()
}

func checkScreen(t *testing.T, screen, want string) {
	t.Helper()
	if !strings.Contains(screen, want) {
		t.Errorf("%q is not in %q", want, screen)
	}
	rest := escapes.ReplaceAllString(screen, "")
	if strings.ContainsAny(rest, "\x1b\a\u009b") {
		t.Errorf("the terminal got %q", rest)
	}
	if all := escapes.FindAllString(screen, -1); len(all) == 0 || all[len(all)-1] != "\x1b[0m" {
		t.Errorf("colors are left on: %q", screen)
	}
}
