package stdio

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// FuzzClientLine reads whatever a client sends as one line. Each message in it
// has a method or is an answer, and what is none is answered with an error that
// is a line of JSON itself.
func FuzzClientLine(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":"a","method":5}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		`{"id":7,"method"`, `null`, "\xff", `{"method":"a","id":3}`,
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, line []byte, tooLong bool) {
		c, _, answers := newTestConn()
		defer c.Close()
		go func() {
			defer c.Close()
			c.messages(bytes.TrimSpace(line), tooLong, func(msg jsonrpc.Message) bool {
				if req, ok := msg.(*jsonrpc.Request); ok && tooLong {
					t.Errorf("a message in a line that is too long: %v", req.Method)
				}
				return true
			})
			_ = c.writeLine(t.Context(), []byte(`"end"`))
		}()
		for {
			answer, err := answers.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			if string(answer) == "\"end\"\n" {
				return
			}
			var a struct{ Error struct{ Code int } }
			if err := json.Unmarshal(answer, &a); err != nil || a.Error.Code >= 0 {
				t.Errorf("answer %q: %v", answer, err)
			}
		}
	})
}
