package main

import (
	"reflect"
	"testing"
)

func TestParseTask(t *testing.T) {
	for _, c := range []struct {
		line string
		want task
	}{
		{"plain", task{Title: "plain"}},
		{"(A) 2026-11-18 Call Ada +sales +x @phone due:2026-11-24 min:45", task{
			Title: "Call Ada", Priority: "A", Created: "2026-11-18", Due: "2026-11-24", Minutes: 45,
			Projects: []string{"sales", "x"}, Contexts: []string{"phone"},
		}},
		{"x 2026-11-19 2026-11-16 done pri:B", task{Title: "done", Done: true, Priority: "B", Completed: "2026-11-19", Created: "2026-11-16"}},
		{"x no dates", task{Title: "no dates", Done: true}},
		{"xylophone lesson", task{Title: "xylophone lesson"}},
		{"X marks the spot", task{Title: "X marks the spot"}},
		{"(a) lower case", task{Title: "(a) lower case"}},
		{"(A)no space", task{Title: "(A)no space"}},
		{"really (A) not first", task{Title: "really (A) not first"}},
		{"2026-02-30 no such day", task{Title: "2026-02-30 no such day"}},
		{"sum 1 + 2 @ home", task{Title: "sum 1 + 2 @ home"}},
		{"at 10:30 read https://example.com/a", task{Title: "at 10:30 read https://example.com/a"}},
		{"mail ada@example.com", task{Title: "mail ada@example.com"}},
		{"a due:soon min:-3 rec:1w", task{Title: "a", Tags: map[string]string{"due": "soon", "min": "-3", "rec": "1w"}}},
		{"größer +büro", task{Title: "größer", Projects: []string{"büro"}}},
	} {
		t.Run(c.line, func(t *testing.T) {
			if got := parseTask(0, c.line); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
