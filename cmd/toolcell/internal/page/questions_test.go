package page

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
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
		if err := queue.Decide(id, consent.Answer{Choice: choice}); err != nil {
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
	queue.Disconnect(client)
	if revocable(held) {
		t.Error("it can be taken back after the end of the connection")
	}
}

// TestDenialsOfThePageSayWhy, and that they are of the page.
func TestDenialsOfThePageSayWhy(t *testing.T) {
	queue, dir := consent.NewQueue(consent.Options{}), t.TempDir()
	s, err := inbox.Listen(dir, queue, nil, func() bool { return false }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v := visit(t, func(o *Options) {
		o.Connect = func() ([]*inbox.Client, error) {
			all, err := inbox.Connect(dir)
			for _, c := range all {
				c.Page = true
			}
			return all, err
		}
	})
	run := queue.Begin(consent.AskerOptions{})
	defer run.End()
	done := make(chan error, 1)
	changed := queue.Changed()
	go func() {
		done <- run.Ask(t.Context(), consent.Call{Server: "bank", Tool: "pay", Reasons: []string{"a rule"}}, func() {})
	}()
	<-changed
	q, waits := run.Pending()
	if !waits {
		t.Fatal("nothing waits")
	}
	resp, err := v.web.PostForm(v.base+"/questions/"+q.ID+"/deny", url.Values{"because": {"use the test account"}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := <-done; !errors.Is(err, consent.ErrDenied) || !strings.Contains(err.Error(), "use the test account") {
		t.Errorf("the code gets %v", err)
	}
	if q, _ = queue.Question(q.ID); q.Answer.By != inbox.ByPage || q.State != consent.Denied {
		t.Errorf("%s by %q", q.State, q.Answer.By)
	}
}
