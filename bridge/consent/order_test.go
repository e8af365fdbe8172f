package consent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// TestCallsOfAGatherAreAskedInTheOrderOfTheCode, in whatever order they come.
func TestCallsOfAGatherAreAskedInTheOrderOfTheCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{Stop: func(error) {}})
		defer r.End()
		numbers := []int{17, 3, 60, 1, 44, 2, 59, 5}
		answers := map[int]error{}
		var mu sync.Mutex
		var asking sync.WaitGroup
		for _, n := range numbers {
			asking.Go(func() {
				err := r.Ask(t.Context(), Call{Server: "bank", Tool: fmt.Sprintf("t%d", n), Number: n, Arguments: json.RawMessage(`{}`)}, func() {})
				mu.Lock()
				defer mu.Unlock()
				answers[n] = err
			})
		}
		changed := d.Changed()
		<-changed
		q := d.Questions()[0]
		if !slices.IsSortedFunc(q.Calls, func(a, b Call) int { return a.Number - b.Number }) || len(q.Calls) != len(numbers) {
			t.Errorf("the question has the calls %v", q.Calls)
		}
		if err := d.Decide(q.ID, Answer{Choice: ForCall}); err != nil {
			t.Fatal(err)
		}
		asking.Wait()
		for n, err := range answers {
			if err != nil {
				t.Errorf("call %d: %v", n, err)
			}
		}
	})
}

// TestReasonsStandBesideTheirCalls if there are several; one that all have stands once.
func TestReasonsStandBesideTheirCalls(t *testing.T) {
	call := func(n int, reasons ...string) Call {
		return Call{Server: "bank", Tool: "pay", Arguments: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), Reasons: reasons}
	}
	same := Question{Calls: []Call{call(1, "a", "b"), call(2, "a", "b")}}
	if got := same.TerminalText(); strings.Count(got, "reason: ") != 2 || !strings.Contains(got, "\nreason: a\nreason: b") {
		t.Errorf("the same reasons:\n%s", got)
	}
	several := Question{Calls: []Call{call(1, "a"), call(2, "a", "b"), call(3, "c")}}
	want := "1. server \"bank\", tool \"pay\", arguments: {\"n\":1}\n   reason: a\n2. server \"bank\", tool \"pay\", arguments: {\"n\":2}\n   reason: a\n   reason: b\n" +
		"3. server \"bank\", tool \"pay\", arguments: {\"n\":3}\n   reason: c"
	if got := several.TerminalText(); !strings.HasSuffix(got, want) {
		t.Errorf("several reasons:\n%s", got)
	}
	var many Question
	for n := range 60 {
		many.Calls = append(many.Calls, call(n, fmt.Sprintf("r%d", n)))
	}
	text := many.Text()
	if !strings.Contains(text, "of the calls that are not shown:\n   reason: `r10`") || strings.Count(text, "reason: ") > 2*maxListedCalls {
		t.Errorf("many calls:\n%s", text)
	}
	if whole := many.WholeTerminalText(); !strings.Contains(whole, "arguments: {\"n\":59}\n   reason: r59") {
		t.Errorf("all of them:\n%s", whole)
	}
	most := Question{Calls: []Call{call(1, "a", "b", "c", "d", "e"), call(2)}}
	if got := most.TerminalText(); !strings.Contains(got, "   reason: c\n   and 2 more reasons\n2. ") {
		t.Errorf("many reasons:\n%s", got)
	}
}
