package consent

import (
	"fmt"
	"strings"
	"testing"
)

// TestAReasonSaysAllOfWhatItIsAbout, however many tools were read from and whatever they
// are called: what comes last in a question is cut.
func TestAReasonSaysAllOfWhatItIsAbout(t *testing.T) {
	var m Marks
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
