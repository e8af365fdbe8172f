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
			res := b.take([]byte(tt.message))
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
			if b.take([]byte(tt.message)) != nil {
				t.Error("a second answer is taken")
			}
		})
	}
}

// TestBulkKeepsNothingOfCancelledRequests: their answers may come all the same.
func TestBulkKeepsNothingOfCancelledRequests(t *testing.T) {
	answer := []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"result":{"a":%q}}`, strings.Repeat("x", bulkFrom)))
	for _, before := range []bool{false, true} {
		b := newBulk()
		b.await(idOf(t, 7.0))
		if before {
			b.cancelled(json.RawMessage(`{"requestId":7}`))
		}
		if res := b.take(answer); (res == nil) != before {
			t.Errorf("before %v: taken: %v", before, res != nil)
		}
		b.cancelled(json.RawMessage(`{"requestId":7}`))
		if len(b.awaited)+len(b.held)+len(b.ids) > 0 {
			t.Errorf("before %v: it keeps %v %v", before, b.awaited, b.ids)
		}
	}
}
