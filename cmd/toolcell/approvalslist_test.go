package main

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
)

func TestStatesSayWhatWasApproved(t *testing.T) {
	several := make([]inbox.Call, 5)
	for want, q := range map[string]inbox.Question{
		"pending":                              {State: consent.Pending},
		"approved":                             {State: consent.Approved, Choice: consent.ForCall, Calls: several},
		"approved for the run":                 {State: consent.Approved, Choice: consent.ForRun},
		"approved, and counts as only reading": {State: consent.Approved, Choice: consent.Believe},
		"approved, 2 of 5 calls":               {State: consent.Approved, Choice: consent.ForCall, Calls: several, Allowed: []int{1, 4}},
		"denied":                               {State: consent.Denied, Choice: consent.Deny},
	} {
		if got := stateText(q); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestWhatACodeAllowsIsSaid(t *testing.T) {
	for want, begun := range map[string]inbox.Challenge{
		"this call":                          {},
		"these 5 calls":                      {Question: inbox.Question{Calls: make([]inbox.Call, 5)}},
		"these 2 calls":                      {Question: inbox.Question{Calls: make([]inbox.Call, 2)}, Calls: []int{1, 2}},
		"only call 2, and deny 4 others":     {Question: inbox.Question{Calls: make([]inbox.Call, 5)}, Calls: []int{2}},
		"only calls 1,3-5, and deny 1 other": {Question: inbox.Question{Calls: make([]inbox.Call, 5)}, Calls: []int{1, 3, 4, 5}},
	} {
		if got := allowed(begun, consent.ForCall); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestTheHintFitsTheQuestion: what a server asks cannot be approved here.
func TestTheHintFitsTheQuestion(t *testing.T) {
	for _, tt := range []struct {
		q    inbox.Question
		want string
	}{
		{inbox.Question{ID: "ask-A", Choices: []consent.Choice{consent.ForCall, consent.Deny}}, "toolcell approvals approve ask-A allows it; deny refuses it"},
		{inbox.Question{ID: "ask-B"}, "the form in your client answers ask-B; toolcell approvals deny ask-B refuses it"},
	} {
		if got := answerHint(tt.q); !strings.HasPrefix(got, tt.want) {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// TestTheStateSaysHowFarAnApprovalGoes, and of one for a connection only as long as it holds.
func TestTheStateSaysHowFarAnApprovalGoes(t *testing.T) {
	for _, tt := range []struct {
		choice        consent.Choice
		holds         bool
		want, allRuns string
	}{
		{consent.ForCall, false, "approved", "approved"},
		{consent.ForRun, false, "approved for the run", "approved for the run"},
		{consent.Believe, false, "approved, and counts as only reading", "approved, and counts as only reading"},
		{consent.ForConnection, true, "allowed for this connection", "approved for the connection"},
		{consent.SameForConnection, true, "allowed for this connection", "approved for the connection"},
		{consent.ReadsForConnection, true, "allowed for this connection", "approved for the connection"},
		{consent.ForConnection, false, "approved", "approved for the connection"},
	} {
		if got := stateText(inbox.Question{State: consent.Approved, Choice: tt.choice, Holds: tt.holds}); got != tt.want {
			t.Errorf("%s, which holds (%t): %q", tt.choice, tt.holds, got)
		}
		if got := (recordedAnswer{State: string(consent.Approved), Scope: string(tt.choice)}).stateText(); got != tt.allRuns {
			t.Errorf("%s, of all: %q", tt.choice, got)
		}
	}
}

// TestWhatIsAllowedIsNamed before the code is typed.
func TestWhatIsAllowedIsNamed(t *testing.T) {
	one, two := inbox.Question{}, inbox.Question{Calls: make([]inbox.Call, 2)}
	for _, tt := range []struct {
		q      inbox.Question
		choice consent.Choice
		want   string
	}{
		{one, consent.ForCall, "this call"},
		{two, consent.ForCall, "these 2 calls"},
		{one, consent.ForRun, "this tool for the rest of the run"},
		{two, consent.ForRun, "the tools of these 2 calls for the rest of the run"},
		{one, consent.ForConnection, "this tool until the client disconnects"},
		{two, consent.ForConnection, "the tools of these 2 calls until the client disconnects"},
		{one, consent.SameForConnection, "this call until the client disconnects, with exactly these arguments"},
		{two, consent.SameForConnection, "these 2 calls until the client disconnects, with exactly these arguments"},
		{two, consent.ReadsForConnection, "everything that only reads and is asked about for the same reasons, until the client disconnects"},
	} {
		if got := allowed(inbox.Challenge{Question: tt.q}, tt.choice); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.choice, got, tt.want)
		}
	}
}
