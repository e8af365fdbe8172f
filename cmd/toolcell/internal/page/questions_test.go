package page

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/bridge/record"
)

// TestApprovalsForAConnectionAreTakenBackHere as long as they hold, however many answers came after them.
func TestApprovalsForAConnectionAreTakenBackHere(t *testing.T) {
	queue, dir := consent.NewQueue(consent.Options{}), t.TempDir()
	s, err := inbox.Listen(dir, queue, nil, func() bool { return false }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client := &consent.Client{Lasting: true}
	// answer has a run ask about a tool, and the user answer.
	answer := func(tool string, choice consent.Choice) (id string) {
		t.Helper()
		r := queue.Begin(consent.AskerOptions{Client: client})
		defer r.End()
		done := make(chan error, 1)
		go func() {
			done <- r.Ask(t.Context(), consent.Call{Server: "bank", Tool: tool, Reasons: []string{"a rule"}}, func() {})
		}()
		for id == "" {
			changed := queue.Changed()
			if q, waits := r.Pending(); waits {
				id = q.ID
				break
			}
			<-changed
		}
		if err := queue.Decide(id, consent.Answer{Choice: choice, Remark: "younger than the client"}); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return id
	}
	held := answer("pay", consent.ForConnection)
	for i := range 25 {
		answer(fmt.Sprint("tool", i), consent.ForCall)
	}
	run := answer("look", consent.ForRun)
	v := visit(t, func(o *Options) { o.Connect = func() ([]*inbox.Client, error) { return inbox.Connect(dir) } })
	revocable := func(id string) bool {
		_, body := v.get("/")
		return strings.Contains(body, "/questions/"+id+"/revoke")
	}
	if !revocable(held) || revocable(run) {
		t.Errorf("what holds can be taken back: %t; the approval for a run that has ended: %t", revocable(held), revocable(run))
	}
	if _, body := v.get("/"); !strings.Contains(body, "(younger than the client)") {
		t.Error("it is not said why an answer is not clearly a person's")
	}
	queue.Disconnect(client)
	if revocable(held) {
		t.Error("it can be taken back after the end of the connection")
	}
}

// asking is a run that waits for the user to allow some calls, and a page that shows the question.
func asking(t *testing.T, calls int) (v *visitor, queue *consent.Queue, q consent.Question, done chan error) {
	t.Helper()
	queue, dir := consent.NewQueue(consent.Options{}), t.TempDir()
	s, err := inbox.Listen(dir, queue, nil, func() bool { return false }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	v = visit(t, func(o *Options) {
		o.Connect = func() ([]*inbox.Client, error) {
			all, err := inbox.Connect(dir)
			for _, c := range all {
				c.Page = true
			}
			return all, err
		}
	})
	run := queue.Begin(consent.AskerOptions{ID: "asks000000"})
	t.Cleanup(run.End)
	done = make(chan error, calls)
	var arrived []func()
	for range calls {
		arrived = append(arrived, run.Announce(false))
	}
	for n, arrived := range arrived {
		go func() {
			done <- run.Ask(t.Context(), consent.Call{Server: "bank", Tool: "pay", Number: n + 1, Recorded: n + 1, Reasons: []string{"a rule"}}, arrived)
		}()
	}
	for {
		changed := queue.Changed()
		if q, waits := run.Pending(); waits && len(q.Calls) == calls {
			return v, queue, q, done
		}
		<-changed
	}
}

// send sends a form of a question.
func (v *visitor) send(id, what string, form url.Values) (int, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.base+"/questions/"+id+"/"+what, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.do(r)
}

// TestDenialsOfThePageSayWhy, and that they are of the page.
func TestDenialsOfThePageSayWhy(t *testing.T) {
	v, queue, q, done := asking(t, 1)
	v.send(q.ID, "deny", url.Values{"because": {"use the test account"}})
	if err := <-done; !errors.Is(err, consent.ErrDenied) || !strings.Contains(err.Error(), "use the test account") {
		t.Errorf("the code gets %v", err)
	}
	if q, _ = queue.Question(q.ID); q.Answer.By != inbox.ByPage || q.State != consent.Denied {
		t.Errorf("%s by %q", q.State, q.Answer.By)
	}
}

// TestAFormThatFailsIsFilledInAgain at its question, with what is wrong, and changes nothing.
func TestAFormThatFailsIsFilledInAgain(t *testing.T) {
	v, queue, q, done := asking(t, 3)
	long := strings.Repeat("<long>", 100)
	for _, c := range []struct {
		id, what string
		form     url.Values
		status   int
		want     []string
	}{
		{q.ID, "deny", url.Values{"because": {long}}, http.StatusUnprocessableEntity, []string{"<h1>It was not denied</h1>", "of at most 500", `name="because" autocomplete="off" value="` + strings.Repeat("&lt;long&gt;", 100) + `"`}},
		{q.ID, "begin", url.Values{"for": {"call"}, "calls": {"2,<9>"}}, http.StatusUnprocessableEntity, []string{"<h1>It was not approved</h1>", "numbers from 1 to 3", `name="calls" autocomplete="off" value="2,&lt;9&gt;"`}},
		{q.ID, "begin", url.Values{"for": {"run"}, "calls": {"2"}}, http.StatusUnprocessableEntity, []string{"<h1>It was not approved</h1>", "go only with &#34;Allow these calls&#34;: clear the field, or use that button.", `value="2"`}},
		{q.ID, "approve", url.Values{"code": {"ABCDEF"}}, http.StatusUnprocessableEntity, []string{"<h1>It was not approved</h1>", "choose first what to allow"}},
		{q.ID, "revoke", nil, http.StatusUnprocessableEntity, []string{"<h1>It was not taken back</h1>", "it does not allow anything now"}},
		{"ask-gone", "deny", url.Values{"because": {"<mine>"}}, http.StatusConflict, []string{"<h1>This question does not wait any more</h1>", "there is no such question", "You had typed: &lt;mine&gt;"}},
		{q.ID, "deny", url.Values{"because": {strings.Repeat("x", maxForm)}, "stop": {"1"}}, http.StatusRequestEntityTooLarge, []string{"<h1>It was not done</h1>", "too long"}},
	} {
		status, body := v.send(c.id, c.what, c.form)
		if status != c.status || strings.Contains(body, "Forbidden") || strings.Contains(body, "data-live") || strings.Count(body, `role="alert"`) != 1 {
			t.Errorf("%s: %d %s", c.what, status, body)
		}
		for _, want := range c.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in %s", c.what, want, body)
			}
		}
		if waits := strings.Contains(body, `action="/questions/`+q.ID+`/deny"`); waits != (c.status != http.StatusRequestEntityTooLarge) {
			t.Errorf("%s: the question is there: %t", c.what, waits)
		}
	}
	if now, _ := queue.Question(q.ID); now.State != consent.Pending {
		t.Errorf("it is %s", now.State)
	}
	if status, _ := v.send(q.ID, "deny", nil); status != http.StatusOK {
		t.Errorf("denied: %d", status)
	}
	for range 3 {
		<-done
	}
	if status, body := v.send(q.ID, "deny", nil); status != http.StatusConflict || !strings.Contains(body, "it was answered already (denied, by ") {
		t.Errorf("denied again: %d %s", status, body)
	}
}

// TestCallsOfAQuestionAreFoundInTheRun: its numbers stand beside the code, and those that the calls have in
// the run below it. The page of the run has the number in the question beside each call.
func TestCallsOfAQuestionAreFoundInTheRun(t *testing.T) {
	v, _, q, done := asking(t, 3)
	j := v.journal()
	run := j.Begin(q.Run, "")
	entries := []record.Entry{record.RunStart{Command: "serve", Code: record.TextOf("look()\npay()\nfor n in 1, 2:\n    pay()\n")}}
	for i, line := range []int{2, 4, 4} {
		entries = append(entries, record.Verdict{Call: i + 5, Line: line, Effect: "tools/call", Server: "bank", Tool: "pay", Decision: "ask", Writes: true})
	}
	entries = append(entries, record.Ask{Question: q.ID, State: "asked", About: "call", Calls: []int{5, 6, 7}, Shown: record.TextOf(q.TerminalText())})
	for _, e := range entries {
		if err := run.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	for path, wants := range map[string][]string{
		"/":              {"Among all calls of the run, 1-3 are #5-#7.", "asks 1</span>", "asks 2, 3</span>"},
		"/runs/" + q.Run: {"(" + q.ID + ", call 1 of 3)", "(" + q.ID + ", call 3 of 3)"},
	} {
		_, body := v.get(path)
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%s: no %q in %s", path, want, body)
			}
		}
	}
	v.send(q.ID, "deny", nil)
	for range 3 {
		<-done
	}
}

// TestAChoiceOfSomeCallsNamesThem, since its title is what the terminal asks the code for.
func TestAChoiceOfSomeCallsNamesThem(t *testing.T) {
	for want, calls := range map[string][]int{"Allow only calls 2, 4 of these 4": {2, 4}, "Allow only call 3 of these 4": {3}} {
		if got := onlySome(inbox.Challenge{Question: inbox.Question{Calls: make([]inbox.Call, 4)}, Calls: calls}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
