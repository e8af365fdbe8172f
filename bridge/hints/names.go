package hints

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on how many names are remembered, and on the sessions of each; the oldest are
// forgotten first.
const (
	maxNames    = 500
	maxSessions = 16
)

// Names are the names that the code of earlier runs has defined. It is safe for
// concurrent use, and its zero value is empty.
type Names struct {
	mu    sync.Mutex
	order []string
	in    map[string][]string // the sessions that a name was defined in, the last one last; "" if in none
}

// Add remembers the names that a run in a session, or in none, has defined.
func (n *Names) Add(session string, names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.in == nil {
		n.in = map[string][]string{}
	}
	for _, name := range names {
		if _, known := n.in[name]; known {
			n.order = slices.DeleteFunc(n.order, func(other string) bool { return other == name })
		}
		name = strings.Clone(name)
		n.order = append(n.order, name)
		in := append(slices.DeleteFunc(n.in[name], func(other string) bool { return other == session }), session)
		n.in[name] = in[max(0, len(in)-maxSessions):]
	}
	if over := len(n.order) - maxNames; over > 0 {
		for _, name := range n.order[:over] {
			delete(n.in, name)
		}
		n.order = slices.Delete(n.order, 0, over)
	}
}

// find returns the sessions that a name was defined in, none if it was not. n may be nil.
func (n *Names) find(name string) (sessions []string) {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.in[name])
}

// liveSessions are those of some sessions that go on.
func liveSessions(r Case, sessions []string) []string {
	return slices.DeleteFunc(slices.Clone(sessions), func(s string) bool { return s == "" || s == r.Session || r.Live == nil || !r.Live(s) })
}

var undefined = text.Pattern(`^NameError: name '(\w{1,100})' is not defined`)

// missingName is for names that are not defined.
func missingName(r Case) string {
	found := undefined().FindStringSubmatch(r.Error)
	if found == nil {
		return ""
	}
	name := found[1]
	if name == "runtime" {
		return importRuntime
	}
	if alias, ok := strings.CutPrefix(name, "mcp_"); ok {
		if _, err := r.Lookup(alias); err != nil && !strings.Contains(r.Error, "Did you mean") {
			return err.Error()
		}
	}
	if tool := failedIn(r.Stderr); tool != "" {
		return definedInSavedTool(r, tool, name)
	}
	return definedEarlier(r, name)
}

var (
	frameLine     = text.Pattern(`^ +File "([^"]{1,300})", line \d`)
	savedToolFile = text.Pattern(`^<user_tools\.(\w{1,100})>$`)
)

// failedIn returns the saved tool that the innermost frame of a traceback is in, or
// "". Frames of what the tool itself gave to eval or exec are in the tool.
func failedIn(stderr []string) string {
	for _, line := range slices.Backward(stderr) {
		frame := frameLine().FindStringSubmatch(line)
		if frame == nil || frame[1] == "<string>" {
			continue
		}
		if tool := savedToolFile().FindStringSubmatch(frame[1]); tool != nil {
			return tool[1]
		}
		return ""
	}
	return ""
}

// definedInSavedTool is for a name that a saved tool lacks: it sees none of the code
// that calls it, so what is true of that code's variables does not help.
func definedInSavedTool(r Case, tool, name string) string {
	verb := "define"
	if strings.Contains(r.Error, "Did you forget to import") {
		verb = "import"
	}
	return fmt.Sprintf("the saved tool %s does not see the variables of the code that calls it: %s %s inside %[1]s and save it again", tool, verb, name)
}

// definedEarlier is for a variable of an earlier run.
func definedEarlier(r Case, name string) string {
	sessions := r.Earlier.find(name)
	live := liveSessions(r, sessions)
	switch {
	case len(sessions) == 0 || r.Session != "" && slices.Contains(sessions, r.Session):
		return "" // the session had it: its code has deleted it, or a note says that it was ended
	case len(live) == 1:
		return fmt.Sprintf("session %q has %s: call run_python with session=%[1]q", live[0], name)
	case len(live) > 1 && r.Session != "":
		return "" // it may be another thing in each of them
	case len(live) > 1:
		return fmt.Sprintf("sessions %s have %s: call run_python with the one that is meant", text.QuoteList(live, 5), name)
	case r.NoSessions:
		return fmt.Sprintf("an earlier call defined %s, but each call begins without variables: define it in this one", name)
	}
	return fmt.Sprintf("an earlier call defined %s, but each call begins without variables: "+
		"give the calls that share them the same session, such as session=\"work\"", name)
}
