package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/mcpproxy"
)

const reason = "twice is enough, " + entrySecret

// asksAnswering returns an asker whose questions get this answer, and are on the record of a gate.
func asksAnswering(t *testing.T, g **Gate, a consent.Answer) *consent.Asker {
	t.Helper()
	u := &user{queue: consent.NewQueue(consent.Options{})}
	u.Asker = u.queue.Begin(consent.AskerOptions{
		Stop: func(why error) { (*g).Stop(why) }, Record: func(q consent.Question) { _ = (*g).RecordAsk(q) },
	})
	u.answerWith(t, func(consent.Question) consent.Answer { return a })
	return u.Asker
}

// TestAPartOfABatchIsSent: what is left out of it counts as denied wherever calls count.
func TestAPartOfABatchIsSent(t *testing.T) {
	for policy, kept := range map[string]bool{"private = true\nrecord = 'arguments'": true, "private = true": false} {
		u, j := newUpstream(t), newJournal(t, "")
		taint := &consent.Taint{}
		var g *Gate
		g = New(Options{
			Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\nask = '*'\ncallsPerRun = 3\n"+policy), Taint: taint, Record: j.run,
			Asker: asksAnswering(t, &g, consent.Answer{Choice: consent.ForCall, Calls: []int{1, 3}, Because: reason, By: "form"}),
		})
		call := func(tool string, n int) error {
			_, err := g.Do(t.Context(), Request{
				Method: mcpproxy.CallTool, Server: "up", Name: tool, Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Unchecked: true, Number: n, More: n < 4,
			})
			return err
		}
		var errs [5]error
		var calls sync.WaitGroup
		for n := 1; n < len(errs); n++ {
			calls.Go(func() { errs[n] = call([]string{"", "write", "read", "write", "read"}[n], n) })
		}
		calls.Wait()
		for n, err := range errs[1:] {
			allowed := n == 0 || n == 2
			if allowed != (err == nil) || !allowed && (!errors.Is(err, consent.ErrDenied) || err.Error() != "denied by the user, who says: "+reason) {
				t.Errorf("call %d: %v", n+1, err)
			}
		}
		if n := u.sent.Load(); n != 2 {
			t.Errorf("%d calls were sent", n)
		}
		if reads := fmt.Sprint(taint.Reads()); reads != "[up.write]" {
			t.Errorf("it counts as having read %s", reads)
		}
		if n, _, _ := g.Past(); n != 2 {
			t.Errorf("%d calls count as made", n)
		}
		checkPartOnRecord(t, j, kept)
	}
}

func checkPartOnRecord(t *testing.T, j *journal, kept bool) {
	t.Helper()
	var numbers, allowed, sent []any
	for _, l := range j.lines(t, false) {
		switch l["kind"] {
		case "call.start":
			sent = append(sent, l["call"])
		case "ask":
			if numbers, _ = l["calls"].([]any); l["state"] != "asked" {
				allowed, _ = l["allowed"].([]any)
				if because, _ := l["because"].(map[string]any); l["state"] != "approved" || l["scope"] != "call" || because["size"] != float64(len(reason)) {
					t.Errorf("the answer on record is %v", l)
				}
			}
		}
	}
	if len(numbers) != 4 || len(allowed) != 2 || allowed[0] != numbers[0] || allowed[1] != numbers[2] || fmt.Sprint(sent) != fmt.Sprint(allowed) && fmt.Sprint(sent) != fmt.Sprint([]any{allowed[1], allowed[0]}) {
		t.Errorf("asked about %v, allowed are %v, sent were %v", numbers, allowed, sent)
	}
	lines, values := fmt.Sprint(j.lines(t, false)), fmt.Sprint(j.lines(t, true))
	if strings.Contains(lines, "twice") || strings.Contains(values, "twice is enough, [hidden:KEY]") != kept || strings.Contains(lines+values, entrySecret) {
		t.Errorf("kept: %t\n%s\n%s", kept, lines, values)
	}
}

// TestWordsAreOnRecordWithTheirQuestionOnly: elsewhere they would stay though values are not kept.
func TestWordsAreOnRecordWithTheirQuestionOnly(t *testing.T) {
	for _, choice := range []consent.Choice{consent.Deny, consent.Stop} {
		u, j := newUpstream(t), newJournal(t, record.KeepNone)
		var g *Gate
		g = New(Options{
			Upstreams: u.Proxy, Granted: granted, Policy: policyIn(t, "[servers.up]\nask = '*'"), Taint: &consent.Taint{}, Record: j.run,
			Asker: asksAnswering(t, &g, consent.Answer{Choice: choice, Because: reason}),
		})
		if err := g.Grant(t.Context(), "the packages six", []string{"a rule"}, ""); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: packages: %v", choice, err)
		}
		if _, err := g.Do(t.Context(), requests["tools/call"]); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: a call: %v", choice, err)
		}
		if lines := fmt.Sprint(j.lines(t, false), j.lines(t, true)); strings.Contains(lines, "twice") || !strings.Contains(lines, "because") {
			t.Errorf("%s: %s", choice, lines)
		}
	}
}
