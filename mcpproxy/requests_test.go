package mcpproxy

import (
	"encoding/json"
	"fmt"
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

// holdBack gives what the SDK is to see of a message, if its result is held back.
func holdBack(b *bulk, message string) *jsonrpc.Response {
	answer := answerOf([]byte(message))
	if answer == nil {
		return nil
	}
	if res := b.hold(answer); res != answer {
		return res
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
		answer := answerOf([]byte(message))
		msg, err := jsonrpc.DecodeMessage([]byte(message))
		if answer == nil {
			continue // the SDK's turn
		}
		if want, ok := msg.(*jsonrpc.Response); err != nil || !ok || want.ID != answer.ID || string(want.Result) != string(answer.Result) {
			t.Errorf("%s is %v %s, of the SDK %+v, %v", message, answer.ID, answer.Result, msg, err)
		}
	}
	if answerOf([]byte(`{"jsonrpc":"2.0","id":7,"result":{}}`)) == nil {
		t.Error("the plainest is not read")
	}
}

// TestBulkTakesOnlyPlainAnswers: whatever is unusual about a large message is
// left to the SDK.
func TestBulkTakesOnlyPlainAnswers(t *testing.T) {
	long := strings.Repeat("x", bulkFrom)
	deep := strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting)
	for _, tt := range []struct {
		name, message string
		takes         bool
	}{
		{"answer", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `"}}`, true},
		{"other order and blanks", ` { "result" : {"a":"` + long + `"} , "id":7, "jsonrpc":"2.0" } `, true},
		{"brackets in text", `{"jsonrpc":"2.0","id":7,"result":{"a":"` + strings.Repeat(`[{\"`, bulkFrom) + `"}}`, true},
		{"short", `{"jsonrpc":"2.0","id":7,"result":{}}`, false},
		{"not awaited", `{"jsonrpc":"2.0","id":8,"result":{"a":"` + long + `"}}`, false},
		{"text id", `{"jsonrpc":"2.0","id":"7","result":{"a":"` + long + `"}}`, false},
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
			b := newBulk()
			b.await(idOf(t, 7.0))
			res := holdBack(b, tt.message)
			if (res != nil) != tt.takes {
				t.Fatalf("takes it: %v", res != nil)
			}
			if res == nil {
				return
			}
			if len(res.Result) > 100 || !json.Valid(res.Result) {
				t.Errorf("the stand-in is %.200s", res.Result)
			}
			if got := b.give(res.Result); !strings.Contains(tt.message, string(got)) || len(got) < bulkFrom || !json.Valid(got) {
				t.Errorf("got %.100s", got)
			}
			if got := b.give(res.Result); len(got) >= bulkFrom {
				t.Error("it is given twice")
			}
			if holdBack(b, tt.message) != nil {
				t.Error("a second answer is taken")
			}
		})
	}
}

// TestBulkKeepsNothingOfCancelledRequests: their answers may come all the same.
func TestBulkKeepsNothingOfCancelledRequests(t *testing.T) {
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"result":{"a":%q}}`, strings.Repeat("x", bulkFrom))
	for _, before := range []bool{false, true} {
		b := newBulk()
		b.await(idOf(t, 7.0))
		if before {
			b.cancelled(json.RawMessage(`{"requestId":7}`))
		}
		if res := holdBack(b, answer); (res == nil) != before {
			t.Errorf("before %v: taken: %v", before, res != nil)
		}
		b.cancelled(json.RawMessage(`{"requestId":7}`))
		if len(b.awaited)+len(b.held)+len(b.ids) > 0 {
			t.Errorf("before %v: it keeps %v %v", before, b.awaited, b.ids)
		}
	}
}
