package main

import (
	"slices"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

// TestFollowTellsBeginningsAndEnds: of a call that hangs its beginning is there, and questions name what
// they are about.
func TestFollowTellsBeginningsAndEnds(t *testing.T) {
	const call = "tools/call"
	f := follower{calls: map[string]map[int]followedCall{}}
	var got []string
	for _, e := range []record.Entry{
		&record.RunStart{Command: "serve", Client: record.Client{Name: "editor", Version: "9"}, Session: "s1", Grants: record.Grants{Servers: []string{"bank", "mail"}}},
		&record.RunReady{},
		&record.CallStart{Call: 1, Effect: call, Server: "bank", Tool: "balance"},
		&record.CallStart{Call: 2, Effect: "resources/read", Server: "mail", Tool: "inbox://1"},
		&record.CallEnd{Call: 1, Server: "bank", Tool: "balance", Outcome: record.OK, Duration: 1500},
		&record.CallEnd{Call: 3, Server: "bank", Tool: "nothing", Outcome: record.Refused},
		&record.Verdict{Call: 4, Effect: call, Server: "bank", Tool: "pay", Decision: "ask", Writes: true},
		&record.Verdict{Call: 5, Effect: call, Server: "mail", Tool: "send", Decision: "ask", Writes: true},
		&record.Ask{Question: "ask-A", State: "asked", About: "call", Calls: []int{4}},
		&record.Ask{Question: "ask-A", State: "denied", About: "call", Calls: []int{4}, By: "form", Client: "editor"},
		&record.CallEnd{Call: 4, Server: "bank", Tool: "pay", Outcome: record.Refused, Writes: true},
		&record.Ask{Question: "ask-B", State: "asked", About: "call", Calls: []int{5, 6}},
		&record.Ask{Question: "ask-B", State: "approved", About: "call", Calls: []int{5, 6}, Scope: "run", By: "toolcell approvals", Terminal: "pts/4"},
		&record.Ask{Question: "ask-C", State: "asked", About: "input", Server: "mail", Tool: "send"},
		&record.Ask{Question: "ask-D", State: "asked", About: "before"},
		&record.CallEnd{Call: 2, Server: "mail", Tool: "inbox://1", Outcome: record.Timeout, Duration: 2_000_000},
		&record.Limit{Name: "time", Effect: "killed"},
		&record.RunEnd{Status: "timeout", Duration: 3_000_000},
	} {
		if line := f.tell(history.Entry{Run: "r", Body: e}); line != "" {
			got = append(got, line)
		}
	}
	want := []string{
		"begins  editor 9, session s1, servers bank, mail",
		"call    #1   bank.balance  reads  sent",
		"call    #2   mail resources/read inbox://1  reads  sent",
		"call    #1   bank.balance  reads  ok  1.5ms",
		"call    #3   bank.nothing  refused",
		"asked   ask-A  bank.pay",
		"decided ask-A  bank.pay  denied in a form of editor",
		"call    #4   bank.pay  writes  refused",
		"asked   ask-B  2 calls: mail.send, …",
		"decided ask-B  2 calls: mail.send, …  approved for the run with toolcell approvals on pts/4",
		"asked   ask-C  mail.send asks for input",
		"asked   ask-D  what the run may have before it starts",
		"call    #2   mail resources/read inbox://1  reads  timeout  2s",
		"limit   time killed",
		"ends    timeout after 3s",
	}
	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			t.Errorf("line %d:\n got  %q\n want %q", i, slices.Concat(got, make([]string, 99))[i], slices.Concat(want, make([]string, 99))[i])
		}
	}
	if len(f.calls) != 0 {
		t.Errorf("it still knows %v", f.calls)
	}
}

// TestFollowForgetsRunsThatNeverEnd, as killed ones do.
func TestFollowForgetsRunsThatNeverEnd(t *testing.T) {
	f := follower{calls: map[string]map[int]followedCall{}}
	for i := range 10 * mostFollowed {
		f.tell(history.Entry{Run: string(rune('a' + i)), Body: &record.CallStart{Call: 1}})
	}
	if len(f.calls) > mostFollowed {
		t.Errorf("it knows %d runs", len(f.calls))
	}
}
