package mcpproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestAddressesInErrorsAreOpenedOnlyIfTheServerMayAskForThem: otherwise the error is the
// answer, as the server gave it. Addresses in results are those of 2026-07-28.
func TestAddressesInErrorsAreOpenedOnlyIfTheServerMayAskForThem(t *testing.T) {
	for _, tt := range []struct {
		era string
		can ElicitCapabilities
	}{{"2025", ElicitCapabilities{Form: true}}, {"2026", both}} {
		s, notes := asker(t, tt.era)
		p := proxyFor(t, Options{}, s)
		p.SetElicits(tt.can)
		u := &user{reply: ElicitationReply{Action: "accept"}}
		_, err := callAsking(t, p, u, `{"visit":{"elicitations":[`+address+`]},"complete":"e1"}`)
		var refused *RemoteError
		if !errors.As(err, &refused) || err.Error() != `calling tool "run" of server "fake": log in first` {
			t.Errorf("%s, %+v: %v", tt.era, tt.can, err)
		}
		if calls := received(notes, "tools/call"); len(calls) != 1 || len(u.asked) > 0 {
			t.Errorf("%s, %+v: the server was called %d times, the user asked %+v", tt.era, tt.can, len(calls), u.asked)
		}
	}
}

// TestOtherErrorsOfServersAreNoAddresses, whatever the user can be asked.
func TestOtherErrorsOfServersAreNoAddresses(t *testing.T) {
	p := proxyFor(t, Options{}, fake(t))
	u := &user{reply: ElicitationReply{Action: "accept"}}
	_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "refuse", User: u, Can: both})
	var refused *RemoteError
	if !errors.As(err, &refused) || refused.Message != "bad arguments" || len(u.asked) > 0 {
		t.Errorf("%v; the user was asked %+v", err, u.asked)
	}
}

// TestACallHasNoMoreThanItsSessionWasTold: a server is asked in a session that another call
// keeps, and that began for a client without addresses.
func TestACallHasNoMoreThanItsSessionWasTold(t *testing.T) {
	s, notes := asker(t, "2025")
	p := proxyFor(t, Options{}, s)
	forms := ElicitCapabilities{Form: true}
	p.SetElicits(forms)
	answer := callThatAsks(t, p, forms)
	u := &user{reply: ElicitationReply{Action: "accept"}}
	r := CallRequest{Server: "fake", Tool: "run", Arguments: json.RawMessage(`{"visit":{"elicitations":[` + address + `]},"complete":"e1"}`), User: u, Can: both}
	_, err := p.Call(t.Context(), r)
	answer()
	mcptest.WantError(t, err, "log in first")
	if begun := received(notes, "initialize"); len(begun) != 1 || len(u.asked) > 0 {
		t.Errorf("%d sessions; the user was asked %+v", len(begun), u.asked)
	}
}

// TestAnErrorHasEightAddressesAtMost: with more, the user is asked for none of them.
func TestAnErrorHasEightAddressesAtMost(t *testing.T) {
	for n, want := range map[int]string{8: "", 9: "names none or more than 8"} {
		s, _ := asker(t, "2025")
		p := proxyFor(t, Options{}, s)
		p.SetElicits(both)
		u := &user{reply: ElicitationReply{Action: "accept"}}
		all := strings.TrimSuffix(strings.Repeat(address+",", n), ",")
		_, err := callAsking(t, p, u, `{"visit":{"elicitations":[`+all+`]},"complete":"e1"}`)
		if want == "" && (err != nil || len(u.asked) != n) {
			t.Errorf("%d addresses: %v; the user was asked %d times", n, err, len(u.asked))
		}
		if want != "" {
			mcptest.WantError(t, err, want)
			if len(u.asked) > 0 {
				t.Errorf("the user was asked %+v", u.asked)
			}
		}
	}
}

// TestAUserWhoCannotBeAskedForAnAddressIsNoFault of the server, and the call is not repeated.
func TestAUserWhoCannotBeAskedForAnAddressIsNoFault(t *testing.T) {
	s, notes := asker(t, "2025")
	p := proxyFor(t, Options{openTimeout: time.Millisecond}, s)
	p.SetElicits(both)
	u := &user{err: fmt.Errorf("the client went away: %w", io.EOF)}
	_, err := callAsking(t, p, u, `{"visit":{"elicitations":[`+address+`]}}`)
	mcptest.WantError(t, err, "the client went away")
	if errors.Is(err, ErrCallLost) || p.Servers()[0].Status != "ready" || len(received(notes, "tools/call")) != 1 {
		t.Errorf("%v; the server is %s and got %s", err, p.Servers()[0].Status, received(notes, "tools/call"))
	}
}
