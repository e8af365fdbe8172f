package message

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func idOf(t *testing.T, v any) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.MakeID(v)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// answerOf returns the result that a message answers a request of ours with, or nil.
func answerOf(t *testing.T, text string) *jsonrpc.Response {
	t.Helper()
	msg, err := NewNotifications(func() {}).Decode(t.Context(), []byte(text), nil)
	if answer, ok := msg.(*jsonrpc.Response); ok && err == nil && answer.Error == nil {
		return answer
	}
	return nil
}

// TestShortAnswersAreReadAsTheSDKDoes, and what is none is not.
func TestShortAnswersAreReadAsTheSDKDoes(t *testing.T) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, ` {"result":{"a":[1,{"b":null}]},"id":"seven","jsonrpc":"2.0"} `,
		`{"jsonrpc":"2.0","id":9007199254740993,"result":{"caf` + "\u00e9 é" + `":1e400}}`,
		`{"jsonrpc":"2.0","id":7,"Result":{}}`, `{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":7,"result":null}`,
		`{"jsonrpc":"2.0","id":7,"result":{},"method":"ping"}`, `{"jsonrpc":2.0,"id":7,"result":{}}`, `{"jsonrpc":"2.0","id":{},"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"result":{}`, `{"jsonrpc":"2.0","id":1.5,"result":{}}`, `[]`, `{}`, ``,
	} {
		answer := answerOf(t, message)
		msg, err := jsonrpc.DecodeMessage([]byte(message))
		if answer == nil {
			continue
		}
		if want, ok := msg.(*jsonrpc.Response); err != nil || !ok || want.ID != answer.ID || string(want.Result) != string(answer.Result) {
			t.Errorf("%s is %v %s, of the SDK %+v, %v", message, answer.ID, answer.Result, msg, err)
		}
	}
	if answerOf(t, `{"jsonrpc":"2.0","id":7,"result":{}}`) == nil {
		t.Error("the plainest is not read")
	}
}

// TestLargeAnswersAreReadWhereTheyLie, and what is wrong with one is noticed.
func TestLargeAnswersAreReadWhereTheyLie(t *testing.T) {
	const size = 32 << 10
	long := strings.Repeat("x", size)
	deep := strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting)
	for _, tt := range []struct {
		name, message string
		answer        bool
	}{
		{"answer", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `"}}`, true},
		{"other order and blanks", ` { "result" : {"a":"` + long + `"} , "id":7, "jsonrpc":"2.0" } `, true},
		{"brackets in text", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + strings.Repeat(`[{\"`, size) + `"}}`, true},
		{"text id", `{"jsonrpc":"2.0","id":"7","result":{"a":"` + long + `"}}`, true},
		{"error", `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"` + long + `"}}`, false},
		{"error beside it", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `"},"error":null}`, true},
		{"true error beside it", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `"},"error":{"code":1}}`, false},
		{"request", `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"` + long + `"}}`, false},
		{"twice a result", `{"jsonrpc":"2.0","result":{"a":"` + long + `"},"result":{}}`, false},
		{"no object", `{"jsonrpc":"2.0","id":7,"result":"` + long + `"}`, true},
		{"another version", `{"jsonrpc":"1.0","id":7,"result":{"a":"` + long + `"}}`, false},
		{"cut short", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long, false},
		{"garbage behind", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `"}}]`, false},
		{"garbage inside", `{"jsonrpc":"2.0","id":7,"result":{"a":` + long + `}}`, false},
		{"control character", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + "\x01" + `"}}`, false},
		{"too deep", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `","b":` + deep + `}}`, true}, // it may be a list with one such item
		{"much too deep", `{"jsonrpc":"2.0","id":7,"result":{"b":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `,"a":"` + long + `"}}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := answerOf(t, tt.message)
			if (answer != nil) != tt.answer {
				t.Fatalf("taken for an answer: %v", answer != nil)
			}
			if answer == nil {
				return
			}
			reply := replyOf(t, string(answer.Result))
			if !strings.Contains(tt.message, string(reply.Result)) || len(reply.Result) < size || !json.Valid(reply.Result) && !strings.Contains(tt.name, "much") {
				t.Errorf("got %.100s", reply.Result)
			}
			isObject := tt.name != "no object"
			if (reply.Check() == nil) != (isObject && !strings.Contains(tt.name, "deep")) || (reply.CheckList() == nil) != isObject {
				t.Errorf("as a value: %v, as a list: %v", reply.Check(), reply.CheckList())
			}
		})
	}
}

// TestRepliesSayWhatTheyAre by their own members alone, however long they are.
func TestRepliesSayWhatTheyAre(t *testing.T) {
	for text, want := range map[string]Reply{
		`{"content":[]}`: {},
		` {"content":[{"isError":true}], "isError" : true } `:          {IsError: true},
		`{"isError":true,"isError":false}`:                             {},
		`{"isError":"true","text":"\"isError\":true"}`:                 {},
		`{"content":[{"isError":true,"resultType":"input_required"}]}`: {},
		`{"resultType":"input_required","inputRequests":{}}`:           {asks: true},
		`{"resultType":"complete","x":"input_required"}`:               {},
	} {
		got := replyOf(t, text)
		if string(got.Result) != strings.TrimSpace(text) || got.IsError != want.IsError || got.asks != want.asks {
			t.Errorf("%s is %+v", text, got)
		}
	}
	if replyOf(t, `{"resultType":"input_required"}`).Check() == nil {
		t.Error("what asks for input is returned to the caller")
	}
	if got := replyOf(t, `[1]`); string(got.Result) != "[1]" || got.Check() == nil {
		t.Errorf("a list is %+v", got)
	}
}

// TestCallsGetTheirOwnResultsOnce: the SDK's own are left to it, and those of calls
// that were given up are kept for nothing.
func TestCallsGetTheirOwnResultsOnce(t *testing.T) {
	var waiting Calls
	add := func(id any) *Call {
		c := &Call{}
		waiting.Add(context.WithValue(t.Context(), callKey{}, c), &jsonrpc.Request{ID: idOf(t, id), Method: "tools/call"})
		return c
	}
	keep := func(id any, text string) string {
		answer := waiting.Keep(idOf(t, id), replyOf(t, text))
		if answer.ID != idOf(t, id) || errors.Is(answer.Error, errKept) == (answer.Result != nil) {
			t.Errorf("the SDK gets %+v", answer)
		}
		return string(answer.Result)
	}
	first, second := add(1.0), add(2.0)
	waiting.Forget(second)
	waiting.Forget(second)
	for id, want := range map[any]string{3.0: `{"a":1}`, "1": `{"a":1}`, 2.0: `{"a":1}`, 1.0: ""} {
		if got := keep(id, `{"a":1}`); got != want {
			t.Errorf("the SDK gets %s for %v", got, id)
		}
	}
	first.Keep(first.id, replyOf(t, `{"again":true}`))
	if keep(1.0, `{"again":true}`) != `{"again":true}` || string(first.reply.Result) != `{"a":1}` || second.kept.Load() || len(waiting.waiting) > 0 {
		t.Errorf("kept: %s, %s; waiting: %v", first.reply.Result, second.reply.Result, waiting.waiting)
	}
	waiting.Add(t.Context(), &jsonrpc.Request{ID: idOf(t, 4.0), Method: "ping"})
	waiting.Add(context.WithValue(t.Context(), callKey{}, first), &jsonrpc.Request{Method: "notifications/cancelled"})
	if ping := waiting.waiting[idOf(t, 4.0)]; len(waiting.waiting) != 1 || ping.call != nil || ping.method != "ping" {
		t.Errorf("of a ping and a notification %v wait", waiting.waiting)
	}
}

func replyOf(t *testing.T, text string) Reply {
	t.Helper()
	r, err := ReplyOf(t.Context(), json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestUndecodedTellsAnswersFromLogs: a broken answer fails its request, one without an ID
// fails the only request that waits, and nothing else is taken.
func TestUndecodedTellsAnswersFromLogs(t *testing.T) {
	n := NewNotifications(func() {})
	for raw, want := range map[string]struct {
		taken  bool
		failed int // at once, and when all that came is known
		strays int
	}{
		`{"jsonrpc":"2.0","id":1,"result":{"a"}}`:                          {true, 1, 0},
		`{"jsonrpc":"2.0","id":1}`:                                         {true, 1, 0},
		`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}`:   {true, 0, 1},
		`{"jsonrpc":"2.0","id":"x","result":{}}`:                           {false, 0, 1}, // it may be another client's
		`{"jsonrpc":"2.0","id":7,"result":{"a"}}`:                          {false, 0, 0},
		`{"level":"info","message":"started`:                               {false, 0, 0},
		`started`:                                                          {false, 0, 0},
		`{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"broken"`: {false, 0, 0},
	} {
		var calls Calls
		calls.Add(t.Context(), &jsonrpc.Request{ID: idOf(t, 1.0), Method: "ping"})
		_, err := n.Decode(t.Context(), []byte(raw), nil)
		if err == nil {
			t.Errorf("%s is a message", raw)
			continue
		}
		failed, taken := calls.Undecoded(t.Context(), []byte(raw), err)
		if strays := calls.Strays(); taken != want.taken || len(failed) != want.failed || len(strays) != want.strays {
			t.Errorf("%s: taken %v, %d failed, %d strays; want %+v", raw, taken, len(failed), len(strays), want)
		}
	}
}

// TestCallsKnowTheirRequests by the context that the SDK sends them with, and by the ID that it
// gives them first.
func TestCallsKnowTheirRequests(t *testing.T) {
	c := &Call{}
	ctx := c.Begin(t.Context())
	if CallOf(ctx) != c || CallOf(t.Context()) != nil || ctx.Err() != nil {
		t.Errorf("the context is of %p, ended: %v", CallOf(ctx), ctx.Err())
	}
	if !c.MarkSent(json.RawMessage("7")) || c.MarkSent(json.RawMessage("8")) || !c.HasID(idOf(t, 7.0)) || c.HasID(idOf(t, 8.0)) {
		t.Errorf("sent as %v", c.id)
	}
	if r, ok := c.Result(); ok || r.Result != nil {
		t.Errorf("it has the result %s", r.Result)
	}
	c.Keep(c.id, replyOf(t, `{"a":1}`))
	if r, ok := c.Result(); !ok || string(r.Result) != `{"a":1}` {
		t.Errorf("its result is %s, %v", r.Result, ok)
	}
	first := errors.New("the first")
	if err := c.Failure(); err != nil {
		t.Errorf("it failed: %v", err)
	}
	c.Fail(first)
	c.Fail(errors.New("another"))
	if err := c.Failure(); !errors.Is(err, first) {
		t.Errorf("it failed: %v", err)
	}
	if c.GiveUp(); ctx.Err() == nil {
		t.Error("its context goes on")
	}
}

// TestRequestsWaitUntilTheyAreAnsweredOrCancelled: a Call is forgotten by its caller instead, and
// a stream of changes has no answer.
func TestRequestsWaitUntilTheyAreAnsweredOrCancelled(t *testing.T) {
	call := &Call{}
	ofCall := call.Begin(t.Context())
	defer call.GiveUp()
	for name, tt := range map[string]struct {
		do    func(*Calls)
		waits []string
	}{
		"nothing":    {func(*Calls) {}, []string{"ping", "tools/call"}},
		"an answer":  {func(c *Calls) { c.Add(t.Context(), &jsonrpc.Response{ID: idOf(t, 1.0)}) }, []string{"ping", "tools/call"}},
		"listening":  {func(c *Calls) { c.Add(t.Context(), &jsonrpc.Request{ID: idOf(t, 3.0), Method: methodListen}) }, []string{"ping", "tools/call"}},
		"answered":   {func(c *Calls) { c.Answered(idOf(t, 2.0)) }, []string{"ping"}},
		"a stranger": {func(c *Calls) { c.Answered(idOf(t, 9.0)) }, []string{"ping", "tools/call"}},
		"cancelled ping": {func(c *Calls) {
			c.Add(t.Context(), &jsonrpc.Request{Method: methodCancelled, Params: json.RawMessage(`{"requestId":1}`)})
		}, []string{"tools/call"}},
		"cancelled call": {func(c *Calls) {
			c.Add(t.Context(), &jsonrpc.Request{Method: methodCancelled, Params: json.RawMessage(`{"requestId":2}`)})
		}, []string{"ping", "tools/call"}},
		"another notification": {func(c *Calls) {
			c.Add(t.Context(), &jsonrpc.Request{Method: "notifications/progress", Params: json.RawMessage(`{"requestId":1}`)})
		}, []string{"ping", "tools/call"}},
	} {
		var calls Calls
		calls.Add(ofCall, &jsonrpc.Request{ID: idOf(t, 2.0), Method: "tools/call"})
		calls.Add(t.Context(), &jsonrpc.Request{ID: idOf(t, 1.0), Method: "ping"})
		tt.do(&calls)
		var waits []string
		for _, w := range calls.waiting {
			waits = append(waits, w.method)
		}
		if slices.Sort(waits); !slices.Equal(waits, tt.waits) {
			t.Errorf("%s: %v wait", name, waits)
		}
	}
}

// TestAnswersToNoRequestAreTold from those that are late.
func TestAnswersToNoRequestAreTold(t *testing.T) {
	var calls Calls
	for _, id := range []float64{2, 1} {
		calls.Add(t.Context(), &jsonrpc.Request{ID: idOf(t, id), Method: "ping"})
		calls.Answered(idOf(t, id))
	}
	said := errors.New("it says so")
	for _, tt := range []struct {
		id   any
		said error
		want string
	}{
		{1.0, nil, ""},
		{2.0, said, ""},
		{0.0, nil, "the server's answer cannot be read: it has the id 0, and no request does"},
		{3.0, nil, "the server's answer cannot be read: it has the id 3, and no request does"},
		{3.0, said, "it says so"},
		{"a", nil, "the server's answer cannot be read: it has the id a, and no request does"},
	} {
		stray := calls.CheckID(idOf(t, tt.id), tt.said)
		if (stray != nil) != (tt.want != "") || stray != nil && (stray.Error() != tt.want || stray.ID != fmt.Sprint(tt.id)) {
			t.Errorf("%v: %+v", tt.id, stray)
		}
	}
}

// errorsOf returns the errors that requests get, with their IDs.
func errorsOf(failed []jsonrpc.Message) string {
	var all []string
	for _, msg := range failed {
		answer, _ := msg.(*jsonrpc.Response)
		if answer == nil {
			all = append(all, fmt.Sprintf("%T", msg))
		} else if said, ok := errors.AsType[*jsonrpc.Error](answer.Error); ok {
			all = append(all, fmt.Sprintf("%v: %d %s", answer.ID.Raw(), said.Code, said.Message))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// TestMessagesThatCannotBeHandledFailTheirRequests, even one that counts as answered: the
// session has no answer yet.
func TestMessagesThatCannotBeHandledFailTheirRequests(t *testing.T) {
	fault := errors.New("a fault")
	for raw, want := range map[string]struct {
		failed string
		known  bool
	}{
		`[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]`: {"1: -32603 a fault; 2: -32603 a fault", true},
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`:                                    {"", false},
		`{"jsonrpc":"2.0","id":"x","result":{}}`:                                      {"", false},
		`{"jsonrpc":"2.0","result":{}}`:                                               {"", false},
	} {
		var calls Calls
		c := &Call{}
		calls.Add(context.WithValue(t.Context(), callKey{}, c), &jsonrpc.Request{ID: idOf(t, 1.0), Method: "tools/call"})
		failed, known := calls.Fail(t.Context(), []byte(raw), fault)
		if got := errorsOf(failed); got != want.failed || known != want.known {
			t.Errorf("%s: %s, known %v", raw, got, known)
		}
		if failed := errors.Is(c.Failure(), fault); failed != want.known || (len(calls.waiting) == 0) != want.known {
			t.Errorf("%s: the call failed: %v; waiting: %v", raw, failed, calls.waiting)
		}
	}
}

// TestAnswersThatAreCutOffFailTheOneRequestThatFits: of several, none is chosen.
func TestAnswersThatAreCutOffFailTheOneRequestThatFits(t *testing.T) {
	for raw, want := range map[string]struct {
		failed string
		strays int
	}{
		`{"jsonrpc":"2.0","id":7`: {`7: -32603 the server's answer cannot be read: it is cut off after "{\"jsonrpc\":\"2.0\",\"id\":7"`, 0},
		`{"jsonrpc":"2.0","id":1`: {"", 1},
		`{"jsonrpc":"2.0","id":9`: {"", 0}, // of a request that is over
		`{"jsonrpc":"2.0","id":x`: {"", 1},
		`{"jsonrpc":"2.0",`:       {"", 1},
	} {
		var calls Calls
		for _, id := range []float64{7, 12, 13} {
			calls.Add(t.Context(), &jsonrpc.Request{ID: idOf(t, id), Method: "ping"})
		}
		_, err := NewNotifications(func() {}).Decode(t.Context(), []byte(raw), nil)
		failed, taken := calls.Undecoded(t.Context(), []byte(raw), err)
		if got := errorsOf(failed); got != want.failed || calls.strays != want.strays || taken != (got != "") {
			t.Errorf("%s: %s, taken %v, %d strays", raw, got, taken, calls.strays)
		}
		if again, _ := calls.Undecoded(t.Context(), []byte(raw), err); len(again) > 0 {
			t.Errorf("%s: a request failed twice: %s", raw, errorsOf(again))
		}
	}
}

// TestAnswersWithoutAnIDFailAllThatWait once there is one for each, with what the last says, and
// no later request.
func TestAnswersWithoutAnIDFailAllThatWait(t *testing.T) {
	for name, tt := range map[string]struct {
		why  error
		want string
	}{
		"an error":        {&StrayError{"null", &jsonrpc.Error{Code: -1, Message: "no"}}, "1: -1 no; 2: -1 no"},
		"a plain one":     {&StrayError{"null", errors.New("odd")}, "1: -32603 the server's answer cannot be read: odd; 2: -32603 the server's answer cannot be read: odd"},
		"unreadable once": {&StrayError{"null", Unreadable("odd")}, "1: -32603 the server's answer cannot be read: odd; 2: -32603 the server's answer cannot be read: odd"},
	} {
		var calls Calls
		add := func(id float64) *Call {
			c := &Call{}
			calls.Add(context.WithValue(t.Context(), callKey{}, c), &jsonrpc.Request{ID: idOf(t, id), Method: "tools/call"})
			return c
		}
		first, second := add(1), add(2)
		calls.Stray(tt.why)
		if failed := calls.Strays(); len(failed) > 0 {
			t.Errorf("%s: failed after one of two: %s", name, errorsOf(failed))
		}
		calls.Stray(tt.why)
		if got := errorsOf(calls.Strays()); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
		_, said := errors.AsType[*jsonrpc.Error](tt.why)
		for _, c := range []*Call{first, second} {
			if _, ok := errors.AsType[*UnreadableError](c.Failure()); ok == said {
				t.Errorf("%s: the call failed with %v", name, c.Failure())
			}
		}
		third := add(3)
		if failed := calls.Strays(); len(failed) > 0 {
			t.Errorf("%s: a later request failed: %s", name, errorsOf(failed))
		}
		add(4)
		calls.Stray(tt.why)
		calls.Forget(third) // it may have been its answer
		if failed := calls.Strays(); len(failed) > 0 {
			t.Errorf("%s: failed by the answer to another: %s", name, errorsOf(failed))
		}
	}
}
