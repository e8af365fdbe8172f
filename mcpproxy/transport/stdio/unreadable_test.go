package stdio

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// TestRequestsThatCanHaveNoAnswerFail at once, and not before it is sure which they are.
func TestRequestsThatCanHaveNoAnswerFail(t *testing.T) {
	const right, also = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{}}`
	for name, tt := range map[string]struct {
		output string
		want   string // errors, by request
	}{
		"cut off at the end":             {right + "\n" + `{"jsonrpc":"2.0","id":2,"result":{"content":[`, `2: the server's answer cannot be read: it is cut off after "…` + `"`},
		"cut off without an ID":          {`{"result":{"content":[` + "\n" + right + "\n", `2: the server's answer cannot be read: it is cut off after "{\"result\":{\"content\":["`},
		"the last without an ID":         {right + "\n" + `{"result":NaN}` + "\n", `2: the server's answer cannot be read: it is not JSON from byte 10 on: "{\"result\":NaN}"`},
		"the last after an error":        {`{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"busy"}}` + "\n" + `{"result":NaN}` + "\n", "2: the server's answer cannot be read"},
		"both without an ID":             {`{"result":NaN}` + "\n" + `{"result":NaN}` + "\n", "1: the server's answer"},
		"UTF-16":                         {right + "\n" + "\xff\xfe{\x00\"\x00}\x00\n", `2: the server's answer cannot be read: it is UTF-16`},
		"a batch with one of them":       {`[` + right + `,{"jsonrpc":"2.0","id":2,"result":{"a":Infinity}}]` + "\n", `2: the server's answer cannot be read: it is not JSON`},
		"the error of a parser":          {also + "\n" + `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, `1: Parse error`},
		"log lines that are JSON":        {`{"id":1,"error":"x","level":NaN}` + "\n" + `{"id":1,"name":"x"}` + "\n" + `[1, NaN]` + "\n" + right + "\n" + also, ""},
		"cut off inside the ID":          {`{"jsonrpc":"2.0","id":1` + "\n" + also, `1: the server's answer cannot be read: it is cut off after`},
		"cut off before the ID":          {right + "\n" + `{"jsonrpc": "2.0", "id":` + "\n", `2: the server's answer cannot be read: it is cut off after`},
		"cut off after the version":      {right + "\n" + `{"jsonrpc":"2.` + "\n", `2: the server's answer cannot be read: it is cut off after`},
		"cut off at the beginning":       {right + "\n" + `{"jso`, `2: the server's answer cannot be read: it is cut off after`},
		"cut off inside null":            {right + "\n" + `{"jsonrpc":"2.0","id":nu` + "\n", `2: the server's answer cannot be read: it is not JSON from byte 22 on`},
		"cut off in another's ID":        {`{"jsonrpc":"2.0","id":7` + "\n" + right + "\n" + also, ""},
		"under an ID of nobody":          {right + "\n" + `{"jsonrpc":"2.0","id":99,"result":{}}`, `2: the server's answer cannot be read: it has the id 99, and no request does`},
		"under the next ID, both":        {strings.ReplaceAll(also+"\n"+also, `"id":2`, `"id":3`), `1: the server's answer cannot be read: it has the id 3`},
		"under 0":                        {right + "\n" + `{"jsonrpc":"2.0","id":0,"result":{"a":1}}`, `2: the server's answer cannot be read: it has the id 0`},
		"an error under an ID of nobody": {right + "\n" + `{"jsonrpc":"2.0","id":99,"error":{"code":-32000,"message":"busy"}}`, `2: busy`},
		"answers twice":                  {right + "\n" + right + "\n" + right + "\n" + also, ""},
		"behind text":                    {"INFO ready" + right + "\nWARN " + `{"a": 1} ` + also + "\n", ""},
		"behind text after a bracket":    {"{\n" + right + "\nINFO ready" + also + "\n", ""},
		"an error behind text":           {`INFO ready{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"busy"}}` + "\n" + also, "1: busy"},
		"behind text, not whole":         {`INFO sends {"jsonrpc":"2.0","id":1,"result":{"a…` + "\n" + `got {"jsonrpc":"2.0","id":2,"method":"x"}` + "\n" + `got ` + also + " so\n" + right + "\n" + also, ""},
		"behind long text":               {strings.Repeat("x", 5000) + right + "\n" + strings.Repeat(`log {"y": 1} `, 3000) + also, ""},
		"a request with the same ID":     {`{"jsonrpc":"2.0","id":1,"method":"ping","params":NaN}` + "\n" + right + "\n" + also, ""},
		"answers that nobody waits for":  {right + "\n" + also + "\n" + `{"jsonrpc":"2.0","id":1,"result":NaN}` + "\n" + `{"result":NaN}`, ""},
		"lines that end with CR":         {right + "\r" + also + "\r", ""},
		"an indented message":            {"{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {\n    \"a\": []\n  }\n}\n" + also, ""},
		"an indented batch":              {"[\r\n  " + right + ",\r\n  " + also + "\r\n]\r\n", ""},
		"an indented message with NaN":   {"{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": NaN\n}\n" + also, "1: the server's answer cannot be read"},
		"an indented line of a log":      {"{\n  a: 1,\n  \"id\": 1\n}\n" + right + "\n" + also, ""},
		"a bracket that is never closed": {"{\n" + right + "\n{\nlog\n" + also, ""},
		"a bracket and endless lines":    {"{\n" + strings.Repeat("log line\n", 5000) + right + "\n" + also, ""},
		"a mark before each line":        {"\ufeff" + right + "\n\ufeff" + also + "\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := wireOver(t, tt.output, 4096)
			for _, id := range []float64{1, 2} {
				made, _ := jsonrpc.MakeID(id)
				w.calls.Add(context.Background(), &jsonrpc.Request{ID: made, Method: "ping"})
			}
			var failed []string
			seen := map[jsonrpc.ID]bool{}
			for {
				msg, err := w.Read(t.Context())
				if err != nil {
					break
				}
				if r, ok := msg.(*jsonrpc.Response); ok {
					seen[r.ID] = true
					if r.Error != nil {
						failed = append(failed, fmt.Sprintf("%v: %v", r.ID.Raw(), r.Error))
					}
				}
			}
			if len(seen) != 2 {
				t.Errorf("%d requests came to an end", len(seen))
			}
			got := strings.Join(failed, "\n")
			if begin, _, _ := strings.Cut(tt.want, "…"); tt.want == "" && got != "" || !strings.Contains(got, begin) {
				t.Errorf("failed: %s\nwant %s", got, tt.want)
			}
		})
	}
}
