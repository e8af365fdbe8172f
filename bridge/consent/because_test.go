package consent

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/text"
)

func TestAReasonIsOneLineThatCanBeSeen(t *testing.T) {
	for name, tt := range map[string]struct{ said, want string }{
		"nothing":            {"", ""},
		"blanks":             {" \t\n ", ""},
		"plain":              {"use the test account", "use the test account"},
		"other languages":    {"nicht jetzt, می\u200cخواهم, 明日 👩\u200d💻", "nicht jetzt, می\u200cخواهم, 明日 👩\u200d💻"},
		"several lines":      {"one\r\ntwo\n\n three\u2028four\u0085five", "one two three fourfive"},
		"escape sequences":   {"a\x1b[2Jb\x1b]0;title\x07c\u009b31md", "abcd"},
		"a lone escape":      {"a\x1b", "a"},
		"NUL and others":     {"a\x00b\x08c\x7fd", "abcd"},
		"turned text":        {"a\u202eb\u2066c\u200fd", "abcd"},
		"tags":               {"a\U000e0041\U000e0042b", "ab"},
		"joiners of nothing": {"a\u200db \u200c c\ufe0f", "ab c"},
		"no UTF-8":           {"a\xff\xfeb", "a\ufffd\ufffdb"},
		"the most":           {strings.Repeat("é", MaxBecause), strings.Repeat("é", MaxBecause)},
		"the most, cleaned":  {strings.Repeat(" ", 200) + strings.Repeat("x", MaxBecause) + "\n", strings.Repeat("x", MaxBecause)},
	} {
		got, err := Because(tt.said)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
		}
		if again, err := Because(got); err != nil || again != got || !utf8.ValidString(got) || len(text.Hidden(got)) > 0 {
			t.Errorf("%s: %q is not clean: %q, %v", name, got, again, err)
		}
	}
}

// TestAReasonThatIsTooLongIsNotCut: the end may say the opposite.
func TestAReasonThatIsTooLongIsNotCut(t *testing.T) {
	for name, said := range map[string]string{
		"a character too many": strings.Repeat("é", MaxBecause+1),
		"a MiB":                strings.Repeat("x", 1<<20),
		"a MiB of escapes":     strings.Repeat("\x1b]", 1<<19),
		"a MiB of nothing":     strings.Repeat("\x00", 1<<20),
	} {
		if got, err := Because(said); err == nil || got != "" || !strings.Contains(err.Error(), "500") || len(err.Error()) > 100 {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestTheCodeIsToldWhatTheUserSays(t *testing.T) {
	for _, tt := range []struct {
		answer Answer
		err    error
		want   string
	}{
		{Answer{Choice: Deny}, ErrDenied, "denied by the user"},
		{Answer{Choice: Deny, Because: " use the\ntest account\x1b[2J"}, ErrDenied, "denied by the user, who says: use the test account"},
		{Answer{Choice: Stop}, ErrStopped, "the user stopped the run"},
		{Answer{Choice: Stop, Because: "wrong file"}, ErrStopped, "the user stopped the run: wrong file"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := NewQueue(Options{})
			var stopped error
			r := d.Begin(AskerOptions{Stop: func(why error) { stopped = why }})
			defer r.End()
			answer := asking(t, r, transfer(1))
			if err := d.Decide(await(t, d, r).ID, tt.answer); err != nil {
				t.Fatal(err)
			}
			err := <-answer
			if !errors.Is(err, tt.err) || err.Error() != tt.want {
				t.Errorf("%+v: the call got %v", tt.answer, err)
			}
			synctest.Wait()
			if tt.answer.Choice == Stop && (stopped == nil || stopped.Error() != tt.want) {
				t.Errorf("%+v: the run was stopped: %v", tt.answer, stopped)
			}
			wrapped := fmt.Errorf("packages: %w", err)
			if HasWords(wrapped) != (tt.answer.Because != "") || HasWords(WithoutWords(wrapped)) || !errors.Is(WithoutWords(wrapped), tt.err) {
				t.Errorf("%+v: it has words: %t; without them: %v", tt.answer, HasWords(wrapped), WithoutWords(wrapped))
			}
		})
	}
}

// TestAReasonAllowsNothing: a user who gives one may not have meant to allow the call.
func TestAReasonAllowsNothing(t *testing.T) {
	one, two := Question{Calls: []Call{transfer(1)}}, Question{Calls: []Call{transfer(1), transfer(2)}}
	for _, tt := range []struct {
		q      *Question
		answer Answer
		valid  bool
	}{
		{&one, Answer{Choice: ForCall, Because: "but not again"}, false},
		{&one, Answer{Choice: ForRun, Because: "x"}, false},
		{&one, Answer{Choice: ForCall, Because: " \x00\u200d"}, true},
		{&one, Answer{Choice: ForCall, Because: strings.Repeat("\x00", 1<<20)}, false},
		{&one, Answer{Choice: Deny, Because: strings.Repeat("x", 1<<20)}, false},
		{&one, Answer{Because: "x"}, false},
		{&two, Answer{Choice: ForCall, Calls: []int{}, Because: "x"}, false},
		{&two, Answer{Choice: ForCall, Calls: []int{1, 2}, Because: "x"}, false}, // that is all of them
		{&two, Answer{Choice: ForCall, Calls: []int{2}, Because: "x"}, true},
		{&Question{Subject: "packages"}, Answer{Choice: ForCall, Because: "x"}, false},
		{&Question{Subject: "packages"}, Answer{Choice: Deny, Because: "x"}, true},
		{&Question{Form: &Form{}}, Answer{Action: "accept", Because: "x"}, false},
		{&Question{Form: &Form{}}, Answer{Action: "decline", Because: "x"}, false},
	} {
		if _, err := tt.q.Check(tt.answer); (err == nil) != tt.valid {
			t.Errorf("%d calls, %.80q: %v", len(tt.q.Calls), fmt.Sprint(tt.answer), err)
		}
	}
}
