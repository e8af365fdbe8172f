package consent

import (
	"slices"
	"testing"
	"testing/synctest"
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

// TestAHintIsBelievedOfTheToolThatWasShown, until its definition or its server's entry changes.
func TestAHintIsBelievedOfTheToolThatWasShown(t *testing.T) {
	for _, choice := range []Choice{Believe, ForCall, ForRun} {
		synctest.Test(t, func(t *testing.T) {
			d := NewQueue(Options{})
			r := d.Begin(AskerOptions{})
			defer r.End()
			call := Call{Server: "bank", Tool: "balance", Identity: "a", Hint: "d"}
			answer := asking(t, r, call)
			if err := d.Decide(await(t, d, r).ID, Answer{Choice: choice}); err != nil {
				t.Fatal(err)
			}
			if err := <-answer; err != nil {
				t.Error(err)
			}
			if got := r.Believed(call); got != (choice == Believe) {
				t.Errorf("%s: believed is %v", choice, got)
			}
			for name, other := range map[string]Call{
				"another tool":       {Server: "bank", Tool: "pay", Identity: "a", Hint: "d"},
				"another definition": {Server: "bank", Tool: "balance", Identity: "a", Hint: "e"},
				"another entry":      {Server: "bank", Tool: "balance", Identity: "b", Hint: "d"},
				"no hint":            {Server: "bank", Tool: "balance", Identity: "a"},
			} {
				if r.Believed(other) {
					t.Errorf("%s: %s is believed", choice, name)
				}
			}
			if got := r.Granted(call) != ""; got != (choice == ForRun) {
				t.Errorf("%s: granted for the run is %v", choice, got)
			}
		})
	}
}
