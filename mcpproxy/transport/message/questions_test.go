package message

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// asking is a connection whose answers are kept.
type asking struct {
	*Notifications
	t       *testing.T
	mu      sync.Mutex
	answers []string
}

func newAsking(t *testing.T) *asking {
	a := &asking{Notifications: NewNotifications(func() {}), t: t}
	a.RespondWith(func(_ context.Context, r *jsonrpc.Response) error {
		raw, err := jsonrpc.EncodeMessage(r)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.answers = append(a.answers, string(raw))
		return err
	})
	return a
}

// asks has the server ask, and reports whether a call took it.
func (a *asking) asks(id int, c *Call) bool {
	a.t.Helper()
	msg, err := a.Decode(a.t.Context(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"n":%d}}`, id, id), c)
	if err != nil {
		a.t.Fatal(err)
	}
	synctest.Wait()
	return msg == nil
}

// answerDuring answers what the server asks during a call, until stop.
func (a *asking) answerDuring(ctx context.Context, c *Call, answer func(context.Context, json.RawMessage) (json.RawMessage, error)) (stop func()) {
	questions := NewQuestions()
	var work sync.WaitGroup
	work.Go(func() {
		for q := range questions.All() {
			q.Answer(answer(q.Context, q.Params))
		}
	})
	end := a.Collect(ctx, c, questions)
	return func() {
		end()
		close(questions)
		work.Wait()
	}
}

// hears writes down what it gets, and answers when it may.
func hears(heard *[]string, may chan struct{}) func(context.Context, json.RawMessage) (json.RawMessage, error) {
	return func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		*heard = append(*heard, string(params))
		select {
		case <-may:
			return json.RawMessage(`{"action":"accept"}`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TestQuestionsGoToTheOldestCall, to the next one when it ended without an answer, and
// to none after that.
func TestQuestionsGoToTheOldestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		if a.asks(1, nil) {
			t.Error("a question outside of a call was taken")
		}
		var first, second []string
		endFirst := a.answerDuring(t.Context(), &Call{}, hears(&first, nil))
		endSecond := a.answerDuring(t.Context(), &Call{}, hears(&second, nil))
		if !a.asks(2, nil) || !a.asks(3, nil) {
			t.Error("a question was not taken")
		}
		if len(first) != 1 || len(second) > 0 {
			t.Errorf("asked at once: %v, %v", first, second)
		}
		endFirst()
		synctest.Wait()
		if len(first) != 1 || len(second) != 1 || len(a.answers) > 0 {
			t.Errorf("after the end of the first: %v, %v, answered %v", first, second, a.answers)
		}
		endSecond()
		if len(a.answers) != 2 || strings.Count(strings.Join(a.answers, ""), `{"action":"decline"}`) != 2 {
			t.Errorf("after the end of both: %v", a.answers)
		}
	})
}

// TestQuestionsOfAStreamGoToItsCall: over HTTP it is known.
func TestQuestionsOfAStreamGoToItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		var first, second []string
		may := make(chan struct{})
		close(may)
		c := &Call{}
		defer a.answerDuring(t.Context(), &Call{}, hears(&first, may))()
		defer a.answerDuring(t.Context(), c, hears(&second, may))()
		if !a.asks(1, c) || len(first) > 0 || len(second) != 1 || len(a.answers) != 1 || !strings.Contains(a.answers[0], `"accept"`) {
			t.Errorf("%v, %v, answered %v", first, second, a.answers)
		}
		if a.asks(2, &Call{}) {
			t.Error("a question of a call that cannot be asked in went to another")
		}
		c.Keep(c.id, Reply{Result: json.RawMessage(`{}`)})
		if a.asks(3, c) {
			t.Error("a call was asked in that has its result")
		}
	})
}

// TestQuestionsEndWhenTheyAreGivenUp by the server, without an answer.
func TestQuestionsEndWhenTheyAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		var heard []string
		may := make(chan struct{})
		defer a.answerDuring(t.Context(), &Call{}, hears(&heard, may))()
		a.asks(1, nil)
		a.asks(2, nil)
		if _, err := a.Decode(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(heard) != 2 || len(a.answers) > 0 {
			t.Errorf("heard %v, answered %v", heard, a.answers)
		}
		if id, open := a.questions.ids.Named(json.RawMessage("1")); open {
			t.Errorf("the ID of the first is kept: %v", id)
		}
		close(may)
		synctest.Wait()
		if len(a.answers) != 1 || !strings.Contains(a.answers[0], `"id":2`) {
			t.Errorf("answered %v", a.answers)
		}
	})
}

// TestCancelledCallsDeclineWhatIsAsked, and hand it to no other.
func TestCancelledCallsDeclineWhatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		ctx, cancel := context.WithCancel(t.Context())
		var first, second []string
		endFirst := a.answerDuring(ctx, &Call{}, hears(&first, nil))
		defer a.answerDuring(t.Context(), &Call{}, hears(&second, nil))()
		a.asks(1, nil)
		cancel()
		endFirst()
		if len(second) > 0 || len(a.answers) != 1 || !strings.Contains(a.answers[0], `{"action":"decline"}`) {
			t.Errorf("the other heard %v, answered %v", second, a.answers)
		}
	})
}

// TestQuestionsOfACallAreBounded, and errors reach the server.
func TestQuestionsOfACallAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		fail := make(chan struct{})
		end := a.answerDuring(t.Context(), &Call{}, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			<-fail
			return nil, errors.New("no terminal")
		})
		taken := 0
		for i := range 20 {
			if a.asks(i, nil) {
				taken++
			}
		}
		close(fail)
		synctest.Wait()
		end()
		if taken != maxPending || len(a.answers) != maxPending || !strings.Contains(a.answers[0], "no terminal") {
			t.Errorf("%d were taken, answered %v", taken, a.answers)
		}
	})
}

// TestAnsweredQuestionsMakeRoomForOthers: only those that wait count.
func TestAnsweredQuestionsMakeRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		var heard []string
		may := make(chan struct{})
		close(may)
		defer a.answerDuring(t.Context(), &Call{}, hears(&heard, may))()
		for i := range 3 * maxPending {
			if !a.asks(i, nil) {
				t.Errorf("question %d was not taken", i)
			}
		}
		if len(heard) != 3*maxPending || len(a.answers) != 3*maxPending {
			t.Errorf("heard %d, answered %d", len(heard), len(a.answers))
		}
	})
}

// TestCallsEndAfterTheirQuestions are answered, even those that nobody has taken yet.
func TestCallsEndAfterTheirQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsking(t)
		questions := NewQuestions()
		stop := a.Collect(t.Context(), &Call{}, questions)
		if !a.asks(1, nil) || !a.asks(2, nil) {
			t.Fatal("a question was not taken")
		}
		accept := json.RawMessage(`{"action":"accept"}`)
		for q := range questions.All() {
			if q.Answer(accept, nil); q.Context.Err() == nil {
				t.Error("the context of a question outlives its answer")
			}
			if len(questions) == 1 {
				break
			}
		}
		if len(questions) != 1 {
			t.Fatalf("%d questions wait for the next", len(questions))
		}
		time.AfterFunc(time.Minute, func() { (<-questions).Answer(accept, nil) })
		begun := time.Now()
		stop()
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("the call ended after %v", took)
		}
		if len(a.answers) != 2 || !strings.Contains(a.answers[0], "accept") || !strings.Contains(a.answers[1], "decline") {
			t.Errorf("answered %v", a.answers)
		}
	})
}

// TestCompletionsAreKeptForThoseWhoAwaitThem later, a few of them.
func TestCompletionsAreKeptForThoseWhoAwaitThem(t *testing.T) {
	n := NewNotifications(func() {})
	completes := func(id string) {
		if _, err := n.Decode(t.Context(), []byte(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"`+id+`"}}`), nil); err != nil {
			t.Fatal(err)
		}
	}
	done, stop := n.AwaitCompleted("a")
	defer stop()
	completes("b")
	select {
	case <-done:
		t.Error("another is taken for it")
	default:
	}
	completes("a")
	<-done
	early, _ := n.AwaitCompleted("b")
	<-early
	_, giveUp := n.AwaitCompleted("c")
	both, stopBoth := n.AwaitCompleted("c")
	defer stopBoth()
	giveUp()
	completes("c")
	<-both // the one that gave up was not alone
	if len(n.questions.awaited) > 0 {
		t.Errorf("awaited after all ended: %v", n.questions.awaited)
	}
	for size, want := range map[int]bool{maxID: true, maxID + 1: false} {
		id := strings.Repeat("i", size)
		completes(id)
		if kept := slices.Contains(n.questions.completed, id); kept != want {
			t.Errorf("an ID of %d bytes is kept: %v", size, kept)
		}
	}
	for range 1000 {
		completes(strings.Repeat("x", 100))
		completes(strings.Repeat("x", 300))
	}
	if len(n.questions.completed) != maxCompleted || len(n.questions.awaited) > 0 {
		t.Errorf("%d are kept, %d awaited", len(n.questions.completed), len(n.questions.awaited))
	}
}

// TestResultsThatAskForInputAreRead in the server's order, within bounds, and with a
// state that can be returned as it is.
func TestResultsThatAskForInputAreRead(t *testing.T) {
	in, err := replyOf(t, `{"resultType":"input_required","requestState":"a\"\u00e9\ufffd\ud83d\ude00","inputRequests":{
		"z":{"method":"elicitation/create","params":{"message":"m"}},"a":{"method":"roots/list"}}}`).InputRequired()
	if err != nil || in.State != "a\"é\uFFFD😀" || len(in.Requests) != 2 || in.Requests[0].Key != "z" || in.Requests[1].Method != "roots/list" ||
		string(in.Requests[0].Params) != `{"message":"m"}` {
		t.Errorf("%+v, %v", in, err)
	}
	for _, empty := range []string{`{}`, `{"inputRequests":{}}`, `{"inputRequests":null,"requestState":null}`} {
		if in, err := (Reply{Result: json.RawMessage(empty)}).InputRequired(); err != nil || len(in.Requests) > 0 || in.State != "" {
			t.Errorf("%s: %+v, %v", empty, in, err)
		}
	}
	many := strings.Repeat(`"k":{"method":"m"},`, 17)
	members := strings.Repeat(`"m":1,`, maxInputMembers)
	for bad, want := range map[string]string{
		`{"requestState":7}`:          "its requestState is not text",
		`{"requestState":"\ud800"}`:   "its requestState has characters that cannot be returned unchanged",
		"{\"requestState\":\"\xff\"}": "its requestState has characters that cannot be returned unchanged",
		`{"requestState":"` + strings.Repeat("s", maxRequestState) + `"}`: "its requestState is longer than 1 MiB",
		`{"inputRequests":[]}`:                                                  "its inputRequests is not a JSON object",
		`{"inputRequests":{"k":7}}`:                                             "one of its inputRequests is not a JSON object",
		`{"inputRequests":{"k":{}}}`:                                            "one of its inputRequests has no method",
		`{"inputRequests":{"k":{"method":"m"},"k":{"method":"m"}}}`:             "a key of its inputRequests comes twice or is longer than 256 bytes",
		`{"inputRequests":{` + many[:len(many)-1] + `}}`:                        "its inputRequests has more than 16 members",
		`{"inputRequests":{"` + strings.Repeat("k", 300) + `":{"method":"m"}}}`: "a key of its inputRequests comes twice or is longer than 256 bytes",
		`{"inputRequests":{"k":{` + members + `"method":"m"}}}`:                 "one of its inputRequests has more than 100 members",
		`{` + members + `"requestState":"s"}`:                                   "has more than 100 members",
		`[]`:                                                                    "is not a JSON object",
	} {
		if in, err := (Reply{Result: json.RawMessage(bad)}).InputRequired(); err == nil || err.Error() != want {
			t.Errorf("%.60s: %+v, %v", bad, in, err)
		}
	}
}
