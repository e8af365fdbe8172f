package message

import (
	"context"
	"encoding/json"
	"errors"
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
