package consent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestAReasonSaysAllOfWhatItIsAbout, however many tools were read from and whatever they
// are called: what comes last in a question is cut.
func TestAReasonSaysAllOfWhatItIsAbout(t *testing.T) {
	var m Taint
	if m.Reason() != "" {
		t.Error("nothing was read")
	}
	m.Add("bank.accounts", "bank.accounts")
	if got := m.Reason(); got != "private data was read before, from bank.accounts" {
		t.Error(got)
	}
	for i := range 30 {
		m.Add(fmt.Sprintf("notes.%d%s", i, strings.Repeat("x", 500)))
	}
	const end = "; what is sent to server \"web\" may get to others"
	q := Question{Calls: []Call{{Server: "web", Tool: "post", Reasons: []string{m.Reason() + end}}}}
	if text := q.Text(); !strings.Contains(text, "from bank.accounts, notes.0xxx") || !strings.Contains(text, " and 26 more; what is sent to server \"web\" may get to others`") {
		t.Error(text)
	}
}

// TestUnknownReadsAreAReason: without marks it is not known what was read.
func TestUnknownReadsAreAReason(t *testing.T) {
	var m *Taint
	if m.Add("bank.accounts"); m.Reason() == "" || len(m.Reads()) == 0 {
		t.Error("nothing counts as read")
	}
}

// TestZeroAnswersDeny: also the states and choices that nothing has set.
func TestZeroAnswersDeny(t *testing.T) {
	if state := (Answer{}).state(); state != Denied {
		t.Errorf("the zero answer is %q", state)
	}
	if err := (&Question{}).err(); !errors.Is(err, ErrDenied) {
		t.Errorf("the zero question is %v", err)
	}
	for _, b := range []*batch{{}, {verdicts: make([]verdict, 1)}} {
		if err := b.verdict(0); !errors.Is(err, ErrDenied) {
			t.Errorf("the zero verdict is %v", err)
		}
	}
	for _, q := range []*Question{{}, {Calls: []Call{{}}}, {Form: &Form{}}, {Command: true, Calls: []Call{{}}}} {
		if q.check(Answer{}) == nil {
			t.Errorf("the zero answer decides %+v", q)
		}
	}
}
