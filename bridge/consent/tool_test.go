package consent

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestEachToolIsDescribedOnce(t *testing.T) {
	pay := Call{Server: "bank", Tool: "pay", Arguments: json.RawMessage(`{}`), Identity: "a", Effect: "may change something", Writes: true, Description: "Pays."}
	changed, unknown := pay, Call{Server: "bank", Tool: "look", Arguments: json.RawMessage(`{}`)}
	changed.Identity, changed.Description = "b", "Pays me."
	q := Question{Calls: []Call{pay, unknown, pay, changed, changed}}
	tools := q.Tools()
	if len(tools) != 2 || tools[0].Description != "Pays." || tools[1].Description != "Pays me." || !tools[0].Writes {
		t.Errorf("got %+v", tools)
	}
	if text := q.TerminalText(); !strings.Contains(text, `
effect of "pay" of "bank": may change something
   description (by the server): "Pays."
effect of "pay" of "bank": may change something
   description (by the server): "Pays me."`) {
		t.Errorf("got %s", text)
	}
	if text := (&Question{Calls: []Call{pay}}).TerminalText(); !strings.HasSuffix(text, "\neffect: may change something\ndescription (by the server): \"Pays.\"") {
		t.Errorf("got %s", text)
	}
}

// TestDescriptionsAreShort, also those that would push the rest of a question out of sight.
func TestDescriptionsAreShort(t *testing.T) {
	for name, text := range map[string]string{
		"long":         strings.Repeat("word ", 1000),
		"empty lines":  strings.Repeat("\n", 100_000) + "end",
		"one word":     strings.Repeat("é", 4000),
		"no UTF-8":     strings.Repeat("\xff", 4000),
		"wide letters": strings.Repeat("\U0001F600", 4000),
	} {
		c := Call{Server: "s", Tool: "t", Arguments: json.RawMessage(`{}`), Reasons: []string{"why"}, Description: text}
		q := Question{ID: "ask-X", Calls: []Call{c}}
		if got := q.Tools()[0].Description; len([]rune(got)) > maxDescription+len(cutMark) || strings.Contains(got, "\n") || !strings.HasSuffix(got, cutMark) {
			t.Errorf("%s: %q", name, got)
		}
		checkText(t, &q)
	}
	short := Question{Calls: []Call{{Server: "s", Tool: "t", Description: " one\n two "}}}
	if got := short.Tools()[0].Description; got != "one two" {
		t.Errorf("a short one is %q", got)
	}
}

// TestAllToolsAreShownInTheWholeText: a question has room for a few.
func TestAllToolsAreShownInTheWholeText(t *testing.T) {
	var q Question
	for i := range 256 {
		q.Calls = append(q.Calls, Call{Server: "s", Tool: fmt.Sprintf("t%d", i), Arguments: json.RawMessage(`{}`), Effect: "may change something", Description: strings.Repeat("x", 4000)})
	}
	checkText(t, &q)
	text := q.Text()
	if n := strings.Count(text, "effect of "); n != maxListedCalls || !strings.Contains(text, "\nand 246 more tools\n") || len(text) > 6000 {
		t.Errorf("%d tools in %d characters", n, len(text))
	}
	whole := q.WholeTerminalText()
	if n := strings.Count(whole, "\neffect of "); n != 256 {
		t.Errorf("the whole text has %d tools", n)
	}
}
