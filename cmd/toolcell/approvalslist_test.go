package main

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
)

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
