package consent

import (
	"slices"
	"testing"
)

// TestAHintIsOfferedOnlyForOneToolThatIsShownWhole.
func TestAHintIsOfferedOnlyForOneToolThatIsShownWhole(t *testing.T) {
	call := func(tool, hint string) Call { return Call{Server: "bank", Tool: tool, Hint: hint, Identity: "a"} }
	once := call("pay", "d")
	once.Once = true
	other := call("pay", "d")
	other.Identity = "b"
	for name, tt := range map[string]struct {
		q    Question
		want bool
	}{
		"one call":             {Question{Calls: []Call{call("pay", "d")}}, true},
		"two of it":            {Question{Calls: []Call{call("pay", "d"), call("pay", "d")}}, true},
		"no hint":              {Question{Calls: []Call{call("pay", "")}}, false},
		"another tool":         {Question{Calls: []Call{call("pay", "d"), call("close", "d")}}, false},
		"another without hint": {Question{Calls: []Call{call("pay", "d"), call("close", "")}}, false},
		"another definition":   {Question{Calls: []Call{call("pay", "d"), call("pay", "e")}}, false},
		"another entry":        {Question{Calls: []Call{call("pay", "d"), other}}, false},
		"its arguments ask":    {Question{Calls: []Call{once}}, false},
		"a command":            {Question{Calls: []Call{call("pay", "d")}, Command: true}, false},
		"packages":             {Question{Subject: "packages"}, false},
		"a form":               {Question{Form: &Form{}}, false},
	} {
		if got := slices.Contains(tt.q.Choices(), Believe); got != tt.want {
			t.Errorf("%s: offered is %v", name, got)
		}
		if err := tt.q.check(Answer{Choice: Believe}); (err == nil) != tt.want {
			t.Errorf("%s: the answer gives %v", name, err)
		}
	}
}
