package hints

import (
	"fmt"
	"strings"
	"testing"
)

func TestNamesOfEarlierRunsAreBounded(t *testing.T) {
	var n Names
	for i := range 3 * maxNames {
		n.Add("", []string{"first", fmt.Sprint("v", i)})
	}
	if len(n.order) != maxNames || len(n.in) != maxNames {
		t.Errorf("%d names, %d known", len(n.order), len(n.in))
	}
	if n.find("first") == nil {
		t.Error("a name that is defined again and again was forgotten")
	}
	if n.find("v0") != nil {
		t.Error("an old name is still known")
	}
}

// TestEarlierVariableIsNamedOnlyIfThatHelps: nothing is said of names that no run has
// defined, or that the session of the run itself had.
func TestEarlierVariableIsNamedOnlyIfThatHelps(t *testing.T) {
	var n Names
	n.Add("", []string{"df"})
	n.Add("a", []string{"rows"})
	live := func(name string) bool { return name == "a" }
	const anew = `an earlier call defined %s, but each call begins without variables: give the calls that share them the same session, such as session="work"`
	for _, tt := range []struct {
		name, session, want string
		live                func(string) bool
	}{
		{"df", "", fmt.Sprintf(anew, "df"), live},
		{"df", "a", fmt.Sprintf(anew, "df"), live},
		{"rows", "", `session "a" has rows: call run_python with session="a"`, live},
		{"rows", "b", `session "a" has rows: call run_python with session="a"`, live},
		{"rows", "", fmt.Sprintf(anew, "rows"), func(string) bool { return false }},
		{"rows", "a", "", live},
		{"other", "", "", live},
	} {
		r := Case{Failed: true, Error: "NameError: name '" + tt.name + "' is not defined", Earlier: &n, Session: tt.session, Live: tt.live}
		if got := For(r); got != tt.want {
			t.Errorf("%s in session %q: %q", tt.name, tt.session, got)
		}
	}
}

// TestVariablesAreDefinedAgainWithoutSessions where the user has switched them off.
func TestVariablesAreDefinedAgainWithoutSessions(t *testing.T) {
	var n Names
	n.Add("", []string{"df"})
	const want = "an earlier call defined df, but each call begins without variables: define it in this one"
	if got := For(Case{Failed: true, Error: "NameError: name 'df' is not defined", Earlier: &n, NoSessions: true}); got != want {
		t.Error(got)
	}
}

// TestSavedToolIsNamed: a saved tool does not see the code that calls it, also if an
// earlier call defined what it lacks.
func TestSavedToolIsNamed(t *testing.T) {
	earlier := &Names{}
	earlier.Add("", []string{"FACTOR"})
	const here, tool = `  File "<run_python>", line 1, in <module>`, `  File "<user_tools.h>", line 2, in h`
	for name, tt := range map[string]struct {
		err    string
		frames []string
		want   string
	}{
		"in the tool":          {"NameError: name 'FACTOR' is not defined", []string{here, tool}, "define FACTOR inside h and save it again"},
		"in what it evaluates": {"NameError: name 'FACTOR' is not defined", []string{here, tool, `  File "<string>", line 1, in <module>`}, "define FACTOR inside h and save it again"},
		"a module":             {"NameError: name 'json' is not defined. Did you forget to import 'json'?", []string{here, tool}, "import json inside h and save it again"},
		"in a callback":        {"NameError: name 'FACTOR' is not defined", []string{here, tool, here}, "an earlier call defined FACTOR"},
		"not in a tool":        {"NameError: name 'FACTOR' is not defined", []string{here}, "an earlier call defined FACTOR"},
	} {
		got := For(Case{Failed: true, Error: tt.err, Stderr: append(tt.frames, tt.err), Earlier: earlier})
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
