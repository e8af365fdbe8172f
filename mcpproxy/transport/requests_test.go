package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

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

// TestShortAnswersAreReadAsTheSDKDoes, and what is none is not.
func TestShortAnswersAreReadAsTheSDKDoes(t *testing.T) {
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`, ` {"result":{"a":[1,{"b":null}]},"id":"seven","jsonrpc":"2.0"} `,
		`{"jsonrpc":"2.0","id":9007199254740993,"result":{"caf` + "\u00e9 é" + `":1e400}}`,
		`{"jsonrpc":"2.0","id":7,"Result":{}}`, `{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":7,"result":null}`,
		`{"jsonrpc":"2.0","id":7,"result":{},"method":"ping"}`, `{"jsonrpc":2.0,"id":7,"result":{}}`, `{"jsonrpc":"2.0","id":{},"result":{}}`,
		`{"jsonrpc":"2.0","id":7,"result":{}`, `{"jsonrpc":"2.0","id":1.5,"result":{}}`, `[]`, `{}`, ``,
	} {
		answer := answerOf([]byte(message))
		msg, err := jsonrpc.DecodeMessage([]byte(message))
		if answer == nil {
			continue // the SDK's turn
		}
		if want, ok := msg.(*jsonrpc.Response); err != nil || !ok || want.ID != answer.id || string(want.Result) != string(answer.Result) {
			t.Errorf("%s is %v %s, of the SDK %+v, %v", message, answer.id, answer.Result, msg, err)
		}
	}
	if answerOf([]byte(`{"jsonrpc":"2.0","id":7,"result":{}}`)) == nil {
		t.Error("the plainest is not read")
	}
}

// TestLargeAnswersAreReadWhereTheyLie, and whatever is unusual about one is left
// to the SDK.
func TestLargeAnswersAreReadWhereTheyLie(t *testing.T) {
	const size = 32 << 10
	long := strings.Repeat("x", size)
	deep := strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting)
	for _, tt := range []struct {
		name, message string
		plain         bool
	}{
		{"answer", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `"}}`, true},
		{"other order and blanks", ` { "result" : {"a":"` + long + `"} , "id":7, "jsonrpc":"2.0" } `, true},
		{"brackets in text", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + strings.Repeat(`[{\"`, size) + `"}}`, true},
		{"text id", `{"jsonrpc":"2.0","id":"7","result":{"a":"` + long + `"}}`, true},
		{"error", `{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"` + long + `"}}`, false},
		{"error beside it", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `"},"error":null}`, false},
		{"request", `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"` + long + `"}}`, false},
		{"twice a result", `{"jsonrpc":"2.0","result":{"a":"` + long + `"},"result":{}}`, false},
		{"no object", `{"jsonrpc":"2.0","id":7,"result":"` + long + `"}`, false},
		{"another version", `{"jsonrpc":"1.0","id":7,"result":{"a":"` + long + `"}}`, false},
		{"cut short", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long, false},
		{"garbage behind", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `"}}]`, false},
		{"garbage inside", `{"jsonrpc":"2.0","id":7,"result":{"a":` + long + `}}`, false},
		{"control character", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + "\x01" + `"}}`, false},
		{"too deep", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `","b":` + deep + `}}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := answerOf([]byte(tt.message))
			if (answer != nil) != tt.plain {
				t.Fatalf("taken for plain: %v", answer != nil)
			}
			if answer != nil && (!strings.Contains(tt.message, string(answer.Result)) || len(answer.Result) < size || !json.Valid(answer.Result)) {
				t.Errorf("got %.100s", answer.Result)
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
		got := replyOf(json.RawMessage(text))
		if string(got.Result) != strings.TrimSpace(text) || got.IsError != want.IsError || got.asks != want.asks {
			t.Errorf("%s is %+v", text, got)
		}
	}
	if got := replyOf(json.RawMessage(`[1]`)); string(got.Result) != "[1]" || got.Check() == nil {
		t.Errorf("a list is %+v", got)
	}
}

// TestRequestsGetTheirOwnAnswersOnce: the SDK's are left to it, and those of
// requests that nobody waits for any more go nowhere.
func TestRequestsGetTheirOwnAnswersOnce(t *testing.T) {
	r := requests{waiting: map[int64]chan<- outcome{}}
	answer := func(id any, text string) bool {
		return r.deliver(idOf(t, id), outcome{Reply: replyOf(json.RawMessage(text))})
	}
	first, came, err := r.add()
	if err != nil {
		t.Fatal(err)
	}
	second, never, _ := r.add()
	r.forget(second)
	for id, ours := range map[any]bool{1.0: false, "x": false, fmt.Sprint(first): false, float64(firstID): false, float64(second): true, float64(second + 1): true} {
		if answer(id, `{"stray":true}`) != ours {
			t.Errorf("the answer to %v is ours: %v", id, !ours)
		}
	}
	if !answer(float64(first), `{}`) || !answer(float64(first), `{"again":true}`) {
		t.Error("an answer is not ours")
	}
	if o := <-came; o.err != nil || string(o.Result) != "{}" {
		t.Errorf("got %s, %v", o.Result, o.err)
	}
	if len(came)+len(never)+len(r.waiting) > 0 {
		t.Errorf("left: %d, %d, %v", len(came), len(never), r.waiting)
	}
	_, came, _ = r.add()
	r.failAll(io.EOF)
	r.failAll(io.ErrClosedPipe)
	if o := <-came; !errors.Is(o.err, io.EOF) {
		t.Errorf("at the end it got %v", o.err)
	}
	if _, _, err := r.add(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

// TestLinesStayWhole, also where the server reads slowly, who wrote one has gone,
// or arguments have lines themselves.
func TestLinesStayWhole(t *testing.T) {
	r, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer stdin.Close()
	w := newStdioTransport(&process{stdin: stdin}, newNotifications(func() {}))
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	long := strings.Repeat("x", 1<<20)
	if err := w.send(impatient, []byte(long)); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("nobody reads, and it says %v", err)
	}
	if err := w.send(impatient, []byte("never")); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a line is on its way, and it says %v", err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := w.send(t.Context(), []byte(fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	in, seen := bufio.NewReader(r), map[string]bool{}
	for range 21 {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		seen[strings.TrimSuffix(line, "\n")] = true
	}
	all.Wait()
	if len(seen) != 21 || !seen[long] || seen["never"] {
		t.Errorf("%d lines came", len(seen))
	}

	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	all.Go(func() {
		if _, err := w.request(ctx, MethodCallTool, &Params{Name: "a", Arguments: json.RawMessage("{\n\"b\":\r\n1}")}); !errors.Is(err, context.Canceled) {
			t.Errorf("err = %v", err)
		}
	})
	for _, want := range []string{`"arguments":{"b":1}`, `"notifications/cancelled"`} {
		line, err := in.ReadString('\n')
		if err != nil || !json.Valid([]byte(line)) || !strings.Contains(line, want) {
			t.Fatalf("%q, %v; want %s", line, err, want)
		}
		giveUp()
	}
	all.Wait()
	w.requests.mu.Lock()
	defer w.requests.mu.Unlock()
	if len(w.requests.waiting) > 0 {
		t.Errorf("waiting: %v", w.requests.waiting)
	}
}
