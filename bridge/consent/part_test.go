package consent

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// asksAbout is a question about so many calls.
func asksAbout(n int) (q Question) {
	for i := range n {
		q.Calls = append(q.Calls, transfer(i+1))
	}
	return q
}

func TestNumbersOfCalls(t *testing.T) {
	for _, tt := range []struct {
		calls int
		typed string
		want  []int // nil: it is an error
	}{
		{5, "1", []int{1}},
		{5, " 1 , 3 - 5 ", []int{1, 3, 4, 5}},
		{5, "5,1-2,2,1", []int{1, 2, 5}},
		{5, "2-2", []int{2}},
		{5, "1-5", []int{1, 2, 3, 4, 5}},
		{12, "10", []int{10}},
		{12, "11", nil}, // it is not shown by itself
		{12, "9-11", nil},
		{5, "", nil},
		{5, " ", nil},
		{5, "0", nil},
		{5, "6", nil},
		{5, "-1", nil},
		{5, "+1", nil},
		{5, "01", nil},
		{5, "1.0", nil},
		{5, "0x1", nil},
		{5, "1,", nil},
		{5, ",1", nil},
		{5, "1,,2", nil},
		{5, "1 2", nil},
		{5, "3-1", nil},
		{5, "1-", nil},
		{5, "-", nil},
		{5, "1-2-3", nil},
		{5, "1;2", nil},
		{5, "all", nil},
		{5, "*", nil},
		{5, "\u0661", nil},
		{5, "\uff11", nil},
		{5, "1\x00", nil},
		{5, "\x1b[2J1", nil},
		{5, "1\u202e", nil},
		{5, "1-99999999999999999999", nil},
		{5, strings.Repeat("1,", 1<<19) + "1", nil},
		{1, "1", nil},
		{0, "1", nil},
	} {
		q := asksAbout(tt.calls)
		got, err := q.ParseCalls(tt.typed)
		if (err == nil) != (tt.want != nil) || !slices.Equal(got, tt.want) {
			t.Errorf("%.40q of %d calls: %v, %v", tt.typed, tt.calls, got, err)
		}
		if err != nil && (len(err.Error()) > 400 || strings.ContainsAny(err.Error(), "\x00\x1b\u202e")) {
			t.Errorf("%.40q: the error is %q", tt.typed, err)
		}
		if err == nil {
			if again, err := q.ParseCalls(FormatCalls(got)); err != nil || !slices.Equal(again, got) {
				t.Errorf("%v is written as %s, which is read as %v, %v", got, FormatCalls(got), again, err)
			}
		}
	}
	for n := range 15 {
		q := asksAbout(n)
		if example := q.CallsExample(); (example == "") != (n < 2) {
			t.Errorf("of %d calls the example is %q", n, example)
		} else if some, err := q.ParseCalls(example); n >= 2 && (err != nil || len(some) == n) {
			t.Errorf("of %d calls %q is %v, %v", n, example, some, err)
		}
	}
}

func TestOnlyCallsOfTheQuestionCanBeAllowedInPart(t *testing.T) {
	three, form := asksAbout(3), Question{Form: &Form{}}
	one := asksAbout(1)
	for _, tt := range []struct {
		q     *Question
		a     Answer
		valid bool
	}{
		{&three, Answer{Choice: ForCall, Calls: []int{1, 3}}, true},
		{&three, Answer{Choice: ForCall, Calls: []int{3, 1}}, false},
		{&three, Answer{Choice: ForCall, Calls: []int{1, 1}}, false},
		{&three, Answer{Choice: ForCall, Calls: []int{0}}, false},
		{&three, Answer{Choice: ForCall, Calls: []int{-1, 2}}, false},
		{&three, Answer{Choice: ForCall, Calls: []int{4}}, false},
		{&three, Answer{Choice: ForRun, Calls: []int{1}}, false},
		{&three, Answer{Choice: Believe, Calls: []int{1}}, false},
		{&three, Answer{Choice: Deny, Calls: []int{1}}, false},
		{&three, Answer{Choice: Stop, Calls: []int{1}}, false},
		{&three, Answer{Calls: []int{1}}, false},
		{&one, Answer{Choice: ForCall, Calls: []int{1}}, false},
		{&form, Answer{Action: "accept", Calls: []int{1}}, false},
		{&Question{Subject: "packages"}, Answer{Choice: ForCall, Calls: []int{1}}, false},
	} {
		if _, err := tt.q.Check(tt.a); (err == nil) != tt.valid {
			t.Errorf("%d calls, %+v: %v", len(tt.q.Calls), tt.a, err)
		}
	}
	if a, err := three.Check(Answer{Choice: ForCall, Calls: []int{1, 2, 3}}); err != nil || a.Calls != nil {
		t.Errorf("all calls one by one: %+v, %v", a, err)
	}
}

// TestAPartOfABatchIsAllowed: by the numbers of the question, in whatever order the calls come, and
// nothing of the others stays.
func TestAPartOfABatchIsAllowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var recorded []Question
		d := NewQueue(Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		r := d.Begin(AskerOptions{Record: func(q Question) { recorded = append(recorded, q) }})
		defer r.End()
		answers := map[int]<-chan error{}
		for _, number := range []int{5, 2, 4, 1, 3} {
			c := transfer(number)
			c.Number, c.Hint = number, "it reads"
			answers[number] = asking(t, r, c)
		}
		q := await(t, d, r)
		if err := d.Decide(q.ID, Answer{Choice: ForCall, Calls: []int{2, 4, 5}, Because: "twice is enough"}); err != nil {
			t.Fatal(err)
		}
		for number, answer := range answers {
			err := <-answer
			if allowed := number == 2 || number > 3; allowed != (err == nil) || !allowed && (!errors.Is(err, ErrDenied) || err.Error() != "denied by the user, who says: twice is enough") {
				t.Errorf("call %d got %v", number, err)
			}
			if c := transfer(number); r.Granted(c) != "" || r.Believed(c) {
				t.Errorf("the tool of call %d is allowed for the run", number)
			}
		}
		decided, _ := d.Question(q.ID)
		if decided.State != Approved || fmt.Sprint(decided.Answer.Calls) != "[2 4 5]" || len(recorded) != 2 || recorded[1].Answer.Because != "twice is enough" {
			t.Errorf("%+v, on record: %d", decided.Answer, len(recorded))
		}
		if err := d.Revoke(q.ID); err == nil {
			t.Error("it was revoked")
		}
		if got := log.String(); strings.Count(got, "state=approved") != 3 || strings.Count(got, "state=denied") != 2 || strings.Contains(got, "twice") {
			t.Errorf("the log is\n%s", got)
		}
	})
}

// TestAPartAllowsNoCallThatIsAskedLater, such as the same one again.
func TestAPartAllowsNoCallThatIsAskedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewQueue(Options{})
		r := d.Begin(AskerOptions{})
		defer r.End()
		for range 2 {
			first, second := asking(t, r, transfer(1)), asking(t, r, transfer(1))
			if err := d.Decide(await(t, d, r).ID, Answer{Choice: ForCall, Calls: []int{1}}); err != nil {
				t.Fatal(err)
			}
			if a, b := <-first, <-second; (a == nil) == (b == nil) {
				t.Errorf("the calls got %v and %v", a, b)
			}
		}
	})
}
