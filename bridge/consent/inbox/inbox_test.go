package inbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"golang.org/x/sys/unix"
)

// open makes a queue whose questions can be answered in a folder.
func open(t *testing.T, o consent.Options) (queue *consent.Queue, dir string, s *Server) {
	t.Helper()
	queue, dir = consent.NewQueue(o), Dir(t.TempDir())
	s, err := Listen(dir, queue, nil, notStrict, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return queue, dir, s
}

// connect returns the one process of a folder.
func connect(t *testing.T, dir string) *Client {
	t.Helper()
	all, err := Connect(dir)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d processes, %v", len(all), err)
	}
	t.Cleanup(func() { all[0].Close() })
	return all[0]
}

var transfer = consent.Call{Server: "bank", Tool: "transfer", Arguments: json.RawMessage(`{"amount":100,"to":"a<b"}`), Reasons: []string{"it writes"}}

// ask asks for a call in the background, and returns the question and its outcome.
func ask(t *testing.T, queue *consent.Queue, calls ...consent.Call) (q consent.Question, outcome <-chan error) {
	t.Helper()
	return askAs(t, queue, consent.AskerOptions{ID: "run-1", Stop: func(error) {}}, calls...)
}

func askAs(t *testing.T, queue *consent.Queue, o consent.AskerOptions, calls ...consent.Call) (q consent.Question, outcome <-chan error) {
	t.Helper()
	before := len(queue.Questions())
	run := queue.Begin(o)
	t.Cleanup(run.End)
	answers := make(chan error, len(calls))
	for _, c := range calls {
		go func() { answers <- run.Ask(context.Background(), c, func() {}) }()
	}
	for {
		changed := queue.Changed()
		if all := queue.Questions(); len(all) > before {
			return all[len(all)-1], answers
		}
		<-changed
	}
}

func TestAQuestionIsListedWithWhatItIsAbout(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	q, _ := ask(t, queue, transfer)
	all, err := connect(t, dir).List()
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	got := all[0]
	if string(got.Arguments) != string(transfer.Arguments) {
		t.Errorf("arguments: %s", got.Arguments)
	}
	if got.ID != q.ID || got.Run != "run-1" || got.Server != "bank" || got.Tool != "transfer" || got.Reason != "it writes" ||
		got.State != consent.Pending || !got.ExpiresAt.After(got.AskedAt) || got.Text != "" || len(got.Choices) != 4 {
		t.Errorf("%+v", got)
	}
	shown, err := connect(t, dir).Show(q.ID)
	if err != nil || !strings.Contains(shown.Text, `"amount":100`) {
		t.Errorf("%+v, %v", shown, err)
	}
}

func TestCallsAskedTogetherAreListedOneByOne(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	other := transfer
	other.Tool, other.Effect, other.Writes, other.Description = "withdraw", "may change something", true, "Withdraws.\n\nNow."
	ask(t, queue, transfer, other, other)
	all, err := connect(t, dir).List()
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if q := all[0]; q.Server != "bank" || q.Tool != "" || string(q.Arguments) != "null" || len(q.Calls) != 3 || q.Calls[0].SHA256 != transfer.Digest() {
		t.Errorf("%+v", q)
	}
	if want := (Tool{"bank", "withdraw", true, "may change something", "Withdraws. Now."}); len(all[0].Tools) != 1 || all[0].Tools[0] != want {
		t.Errorf("tools: %+v, want %+v", all[0].Tools, want)
	}
}

// TestLargeArgumentsAreNotListed: they are in the text of their question.
func TestLargeArgumentsAreNotListed(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	list := func(size int, calls ...consent.Call) Question {
		t.Helper()
		for i := range calls {
			calls[i].Arguments = json.RawMessage(`"` + strings.Repeat("x", size/len(calls)-2) + `"`)
		}
		q, _ := ask(t, queue, calls...)
		all, err := connect(t, dir).List()
		if err != nil {
			t.Fatal(err)
		}
		for _, listed := range all {
			if listed.ID == q.ID {
				return listed
			}
		}
		t.Fatal("the question is not listed")
		return Question{}
	}
	if q := list(maxListed, transfer); len(q.Arguments) != maxListed {
		t.Errorf("the most for one call: %d bytes", len(q.Arguments))
	}
	if q := list(maxListed+1, transfer); string(q.Arguments) != "null" {
		t.Errorf("more for one call: %d bytes", len(q.Arguments))
	}
	if q := list(maxListed, transfer, transfer); len(q.Calls) != 2 || len(q.Calls[1].Arguments) != maxListed/2 {
		t.Errorf("the most for two calls: %d calls", len(q.Calls))
	}
	if q := list(maxListed+2, transfer, transfer); len(q.Calls) != 2 || string(q.Calls[1].Arguments) != "null" {
		t.Errorf("more for two calls: %d calls", len(q.Calls))
	}
}

// TestLinesOfAProcessAreBounded: another program may be at the other end.
func TestLinesOfAProcessAreBounded(t *testing.T) {
	zeros, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zeros.Close()
	c := &Client{lines: bufio.NewReader(io.LimitReader(zeros, maxReply+(64<<10)))}
	if line, err := c.readLine(); !errors.Is(err, errAnswer) {
		t.Errorf("%d bytes, %v", len(line), err)
	}
}

func TestDenyingNeedsNoTerminal(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	for stop, want := range map[bool]error{false: consent.ErrDenied, true: consent.ErrStopped} {
		q, outcome := ask(t, queue, transfer)
		if err := connect(t, dir).Deny(q.ID, stop, ""); err != nil {
			t.Error(err)
		}
		if err := <-outcome; !errors.Is(err, want) {
			t.Errorf("stop %t: %v", stop, err)
		}
	}
}

func TestADenialMayHaveAReason(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	longest := strings.Repeat("<", consent.MaxBecause) // of which JSON makes six bytes each
	for stop, want := range map[bool]error{false: consent.ErrDenied, true: consent.ErrStopped} {
		q, outcome := ask(t, queue, transfer)
		if err := connect(t, dir).Deny(q.ID, stop, longest); err != nil {
			t.Fatal(err)
		}
		if err := <-outcome; !errors.Is(err, want) || !strings.HasSuffix(err.Error(), longest) {
			t.Errorf("stop %t: %v", stop, err)
		}
		if shown, err := connect(t, dir).Show(q.ID); err != nil || shown.Because != longest {
			t.Errorf("stop %t: %+v, %v", stop, shown, err)
		}
	}
	q, _ := ask(t, queue, transfer)
	if err := connect(t, dir).Deny(q.ID, false, strings.Repeat("x", 1<<20)); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("a MiB: %v", err)
	}
	if got := raw(t, dir, fmt.Sprintf(`{"op":"deny","id":%q,"because":"%s"}`, q.ID, strings.Repeat("x", consent.MaxBecause+1))); !strings.Contains(got, `"error":"the reason has 501 characters`) {
		t.Errorf("a character too many: %s", got)
	}
	if got := raw(t, dir, fmt.Sprintf(`{"op":"deny","id":%q,"because":"a\u001b[2J\nb\u202e\u0000"}`, q.ID)); !strings.Contains(got, `"end":true`) {
		t.Fatal(got)
	}
	if got, _ := queue.Question(q.ID); got.Answer.Because != "a b" {
		t.Errorf("%q", got.Answer.Because)
	}
}

func TestAServerGetsNoReason(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	run := queue.Begin(consent.AskerOptions{Stop: func(error) {}})
	t.Cleanup(run.End)
	answer := make(chan consent.Answer, 1)
	go func() {
		a, _ := run.AskForm(context.Background(), consent.Form{Server: "bank", Message: "which account?"})
		answer <- a
	}()
	for len(queue.Questions()) == 0 {
		<-queue.Changed()
	}
	q, c := queue.Questions()[0], connect(t, dir)
	if err := c.Deny(q.ID, false, "none of your business"); err == nil || !strings.Contains(err.Error(), "leave --because out") {
		t.Errorf("with a reason: %v", err)
	}
	if err := c.Deny(q.ID, false, ""); err != nil {
		t.Fatal(err)
	}
	if a := <-answer; a.Action != "decline" || a.Because != "" {
		t.Errorf("%+v", a)
	}
}

// TestTheNumbersOfAnApprovalAreChecked before there is a code to type.
func TestTheNumbersOfAnApprovalAreChecked(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	q, _ := ask(t, queue, transfer, transfer, transfer)
	one, _ := ask(t, queue, transfer)
	for _, tt := range []struct{ id, choice, calls, want string }{
		{q.ID, "call", "4", "numbers from 1 to 3, such as 1,3"},
		{q.ID, "call", " ", "numbers from 1 to 3, such as 1,3"},
		{q.ID, "call", "1-", "numbers from 1 to 3, such as 1,3"},
		{q.ID, "run", "1", "about some of the calls"},
		{one.ID, "call", "1", "not several calls"},
		{q.ID, "call", "1,3", ErrSelf.Error()}, // this test has started the server
	} {
		if _, err := connect(t, dir).Begin(tt.id, consent.Choice(tt.choice), tt.calls); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	if got, _ := queue.Question(q.ID); got.State != consent.Pending {
		t.Errorf("the question is %s", got.State)
	}
}

// TestAnOlderServeIsNotTakenToAllowSomeCalls: it does not know numbers, and its code is for all calls.
func TestAnOlderServeIsNotTakenToAllowSomeCalls(t *testing.T) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = bufio.NewReader(conn).ReadString('\n')
		_, _ = conn.Write([]byte(`{"question":{"id":"ask-x"},"code":"AAAA"}` + "\n" + `{"end":true}` + "\n"))
	}()
	conn, err := net.DialUnix("unix", nil, l.Addr().(*net.UnixAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &Client{conn: conn, lines: bufio.NewReader(conn)}
	if begun, err := c.Begin("ask-x", consent.ForCall, "1"); err == nil || begun.Code != "" || !strings.Contains(err.Error(), "older version") {
		t.Errorf("%+v, %v", begun, err)
	}
}

func TestOneOfTwoAnswersWins(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	q, outcome := ask(t, queue, transfer)
	const at = 8
	errs := make([]error, at)
	var ready, work sync.WaitGroup
	ready.Add(at)
	for i := range at {
		c := connect(t, dir)
		work.Go(func() {
			ready.Done()
			ready.Wait()
			errs[i] = c.Deny(q.ID, i%2 == 0, "")
		})
	}
	work.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !errors.Is(err, consent.ErrDecided) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d answers won", won)
	}
	if err := <-outcome; err == nil {
		t.Error("the call was allowed")
	}
}

func TestAnUnknownQuestionIsRefused(t *testing.T) {
	_, dir, _ := open(t, consent.Options{})
	c := connect(t, dir)
	_, showErr := c.Show("ask-nope")
	for _, err := range []error{showErr, c.Deny("ask-nope", false, ""), c.Revoke("ask-nope")} {
		if !errors.Is(err, consent.ErrUnknown) {
			t.Error(err)
		}
	}
}

func TestAnExpiredQuestionCannotBeApproved(t *testing.T) {
	queue, _, s := open(t, consent.Options{})
	q, outcome := askAs(t, queue, consent.AskerOptions{Timeout: time.Nanosecond, Stop: func(error) {}}, transfer)
	if err := <-outcome; !errors.Is(err, consent.ErrExpired) {
		t.Fatal(err)
	}
	for _, r := range []request{{Op: opChallenge, ID: q.ID, For: consent.ForCall}, {Op: opDeny, ID: q.ID}} {
		c := &serverConn{Server: s}
		if err := c.do(r); !errors.Is(err, consent.ErrDecided) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("%s: %v", r.Op, err)
		}
	}
}

// TestTheProgramThatAsksCannotApprove: this test is what has started the server, and the
// process that wants to approve, which has a terminal or not.
func TestTheProgramThatAsksCannotApprove(t *testing.T) {
	queue, dir, s := open(t, consent.Options{})
	q, _ := ask(t, queue, transfer)
	own, err := servingOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mayApprove(os.Getpid(), []serving{own}); err == nil {
		t.Error("without a server that asks, a process may approve")
	}
	own.own = true
	if _, err := mayApprove(os.Getpid(), []serving{own}); !errors.Is(err, ErrSelf) {
		t.Errorf("a process under its own launchers: %v", err)
	}
	s.ownErr = errUnseen
	if err := raw(t, dir, fmt.Sprintf(`{"op":"challenge","id":%q,"for":"call"}`, q.ID)); !strings.Contains(err, errUnseen.Error()) {
		t.Errorf("where the processes above the server cannot be seen: %s", err)
	}
	s.ownErr = nil
	if err := raw(t, dir, fmt.Sprintf(`{"op":"challenge","id":%q,"for":"call"}`, q.ID)); !strings.Contains(err, ErrSelf.Error()) {
		t.Errorf("over the socket: %s", err)
	}
	if got, _ := queue.Question(q.ID); got.State != consent.Pending {
		t.Errorf("the question is %s", got.State)
	}
}

// raw sends a line and returns the line that comes back.
func raw(t *testing.T, dir, line string) string {
	t.Helper()
	c := connect(t, dir)
	if _, err := c.conn.Write([]byte(line + "\n")); err != nil {
		t.Fatal(err)
	}
	back, err := c.readLine()
	if err != nil {
		t.Fatal(err)
	}
	return string(back)
}

func TestAnApprovalNeedsTheCodeOfItsConnection(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	q, _ := ask(t, queue, transfer)
	if got := raw(t, dir, fmt.Sprintf(`{"op":"approve","id":%q,"code":"AAAA"}`, q.ID)); !strings.Contains(got, "begins with a challenge") {
		t.Errorf("without a challenge: %s", got)
	}
	c := &serverConn{Server: &Server{queue: queue, log: slog.New(slog.DiscardHandler)}, peer: &unix.Ucred{}}
	for n := range maxWrong {
		if c.guessed(q.ID, 0) {
			t.Errorf("%d wrong codes are too many", n)
		}
		c.challenge = &challenge{id: q.ID, answer: consent.Answer{Choice: consent.ForCall}, code: "AAAA"}
		if err := c.approve(request{ID: q.ID, Code: "AAAB"}); !errors.Is(err, ErrCode) || kindOf(err) != kindCode || c.challenge != nil {
			t.Errorf("with a wrong code: %v", err)
		}
	}
	if err := c.begin(request{ID: q.ID, For: consent.ForCall}); !errors.Is(err, errGuessed) {
		t.Errorf("after %d wrong codes: %v", maxWrong, err)
	}
	if other, _ := ask(t, queue, transfer); c.guessed(other.ID, 0) {
		t.Error("wrong codes count for another question")
	}
	if got, _ := queue.Question(q.ID); got.State != consent.Pending {
		t.Errorf("the question is %s", got.State)
	}
}

func TestAnApprovalForTheRunCanBeRevoked(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	q, outcome := ask(t, queue, transfer)
	if err := queue.Decide(q.ID, consent.Answer{Choice: consent.ForRun}); err != nil {
		t.Fatal(err)
	}
	if err := <-outcome; err != nil {
		t.Fatal(err)
	}
	c := connect(t, dir)
	if err := c.Revoke(q.ID); err != nil {
		t.Fatal(err)
	}
	if err := c.Revoke(q.ID); err == nil {
		t.Error("it was revoked twice")
	}
	if all, err := c.List(); err != nil || all[0].State != consent.Revoked {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestAHundredQuestionsAreListed(t *testing.T) {
	if testing.Short() {
		t.Skip("it asks a hundred questions")
	}
	queue, dir, _ := open(t, consent.Options{Frozen: 200})
	for range 100 {
		ask(t, queue, transfer)
	}
	all, err := connect(t, dir).List()
	if err != nil || len(all) != 100 {
		t.Errorf("%d questions, %v", len(all), err)
	}
}

func TestOnlyTheUserCanReachTheSocket(t *testing.T) {
	_, dir, s := open(t, consent.Options{})
	for path, want := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Join(dir, s.name): 0o600 | os.ModeSocket} {
		if st, err := os.Lstat(path); err != nil || st.Mode() != want {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
}

func TestADeepFolderWorks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat(strings.Repeat("d", 100)+"/", 3))
	s, err := Listen(dir, consent.NewQueue(consent.Options{}), nil, notStrict, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if all, err := connect(t, dir).List(); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestClosingRemovesTheSocket(t *testing.T) {
	dir := t.TempDir()
	s, err := Listen(dir, consent.NewQueue(consent.Options{}), nil, notStrict, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, dir) // an open connection does not delay it
	defer c.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestAFolderOfAnotherUserOrALinkIsRefused(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	if _, err := Connect(link); err == nil {
		t.Error("a link was followed")
	}
	if os.Geteuid() != 0 {
		t.Skip("to give a folder away takes root")
	}
	theirs := t.TempDir()
	if err := os.Chown(theirs, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(theirs, consent.NewQueue(consent.Options{}), nil, notStrict, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("the folder of another user was used")
	}
}

// TestHostileClientsDoNotBlock: clients that write no line, garbage, or do not read.
func TestHostileClientsDoNotBlock(t *testing.T) {
	queue, dir, _ := open(t, consent.Options{})
	big := transfer
	big.Arguments = json.RawMessage(`{"a":"` + strings.Repeat("x", 200<<10) + `"}`)
	for range 5 {
		ask(t, queue, big)
	}
	for range 5 {
		endless, garbage, deaf := connect(t, dir), connect(t, dir), connect(t, dir)
		if _, err := garbage.conn.Write([]byte("\x00\xff{]\n")); err != nil {
			t.Error(err)
		}
		if back, err := garbage.readLine(); err != nil || !strings.Contains(string(back), "this is no request") {
			t.Errorf("garbage: %s, %v", back, err)
		}
		if _, err := garbage.readLine(); err == nil {
			t.Error("the connection goes on after garbage")
		}
		_ = endless.conn.SetDeadline(time.Now().Add(10 * time.Second))
		for b := bytes.Repeat([]byte("a"), 1<<10); ; {
			if _, err := endless.conn.Write(b); err != nil {
				if errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error("an endless line is read on")
				}
				break
			}
		}
		for range 3 {
			if _, err := deaf.conn.Write([]byte(`{"op":"list"}` + "\n")); err != nil {
				t.Error(err)
			}
		}
	}
	if all, err := connect(t, dir).List(); err != nil || len(all) != 5 {
		t.Errorf("%d questions, %v", len(all), err)
	}
}

func TestTooManyConnectionsAreClosed(t *testing.T) {
	_, dir, _ := open(t, consent.Options{})
	for range maxConns {
		connect(t, dir)
	}
	c := connect(t, dir)
	if _, err := c.List(); err == nil {
		t.Error("there are more connections than may be")
	}
}

// TestAStoppedProcessIsNamed: one that does not answer delays nobody for long.
func TestAStoppedProcessIsNamed(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	unanswered := &Client{PID: 17, lines: bufio.NewReader(ours)}
	if err := unanswered.explain(os.ErrDeadlineExceeded); !strings.Contains(err.Error(), "process 17") || !strings.Contains(err.Error(), "kill -CONT 17") {
		t.Error(err)
	}
}

func notStrict() bool { return false }
