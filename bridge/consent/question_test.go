package consent

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestChoicesOfQuestions(t *testing.T) {
	call := Call{Server: "bank", Tool: "pay", Arguments: json.RawMessage(`{}`)}
	once, hint, long := call, call, call
	once.Once, hint.Hint = true, "d"
	long.Arguments = json.RawMessage(`"` + strings.Repeat("x", maxArguments) + `"`)
	for name, tt := range map[string]struct {
		q    Question
		want []Choice
	}{
		"a form":               {Question{Form: &Form{Server: "bank"}}, nil},
		"packages":             {Question{Subject: "packages"}, []Choice{ForCall, Deny}},
		"a command":            {Question{Calls: []Call{call}, Command: true}, []Choice{ForCall, Deny}},
		"a call":               {Question{Calls: []Call{call}}, []Choice{ForCall, ForRun, Deny, Stop}},
		"a call with a hint":   {Question{Calls: []Call{hint}}, []Choice{ForCall, ForRun, Believe, Deny, Stop}},
		"calls, one for once":  {Question{Calls: []Call{call, once}}, []Choice{ForCall, Deny, Stop}},
		"a call that is cut":   {Question{Calls: []Call{long}}, []Choice{ForCall, Deny, Stop}},
		"more than are listed": {Question{Calls: slices.Repeat([]Call{call}, maxListedCalls+1)}, []Choice{ForCall, Deny, Stop}},
	} {
		if got := tt.q.Choices(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestTitlesSayHowMuchIsAllowed(t *testing.T) {
	for name, tt := range map[string]struct {
		calls int
		want  map[Choice]string
	}{
		"packages": {0, map[Choice]string{ForCall: "Allow it for this run", Deny: "Do not allow it"}},
		"a call": {1, map[Choice]string{
			ForCall: "Allow this call", ForRun: "Allow this tool for the rest of this run",
			Believe: "Allow it, and count this tool as one that only reads from now on", Deny: "Do not allow it", Stop: "Stop the run",
		}},
		"two calls": {2, map[Choice]string{
			ForCall: "Allow these 2 calls", ForRun: "Allow these tools for the rest of this run", Deny: "Do not allow it", Stop: "Stop the run",
		}},
	} {
		q := Question{Calls: make([]Call, tt.calls)}
		for choice, want := range tt.want {
			if got := q.Title(choice); got != want {
				t.Errorf("%s: %s is %q, want %q", name, choice, got, want)
			}
		}
	}
}
