package run

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
)

func TestAnApprovalSaysWhatWaits(t *testing.T) {
	for want, q := range map[string]consent.Question{
		"decide about bank.transfer and 1 more call, and the run is paused: tell the user to run `toolcell approvals` ":               {Calls: []consent.Call{{Server: "bank", Tool: "transfer"}, {Server: "bank", Tool: "transfer"}}},
		`decide about what server "bank" asks during bank.pay, and the run is paused: tell the user that its form may be shown again`: {Form: &consent.Form{Server: "bank", Tool: "pay"}},
		"decide about the package six, and the code has not started: ":                                                                {Subject: "the package six"},
	} {
		q.ID = "ask-1"
		if got := newApproval(&q).Summary(); !strings.Contains(got, want) || !strings.HasSuffix(got, `session="ask-1"`) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
