package stdio

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// FuzzClientReads has the SDK's client read what a server sends. Its readers run in
// goroutines of their own, where nothing recovers a panic: one would end the fuzzer.
func FuzzClientReads(f *testing.F) {
	lists, err := filepath.Glob("../../mcptest/testdata/servers/mcp-server-*.json")
	if err != nil || len(lists) == 0 {
		f.Fatal("no lists of servers", err)
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(answer(2, bytes.TrimSpace(text)))
	}
	for _, result := range []string{
		`{"tools":{}}`, `{"tools":[null]}`, `{"tools":[{"name":7}]}`, `{"tools":[],"nextCursor":2}`, `[]`, `"text"`, `null`, `{"content":"text"}`,
		`{"content":[{"type":"text","text":null}]}`, `{"content":[{"type":"resource","resource":[]}]}`, `{"_meta":[],"tools":[]}`,
	} {
		f.Add(answer(2, []byte(result)))
	}
	for _, asked := range []string{
		`{"jsonrpc":"2.0","id":1.5,"method":"sampling/createMessage","params":[]}`, `{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"requestedSchema":7}}`,
		`{"jsonrpc":"2.0","id":2,"method":"roots/list","params":null}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[]}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":1}}`, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":[]}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, `{"jsonrpc":"2.0","id":2,"error":"text"}`, `{"jsonrpc":"2.0","id":2,"error":{"code":"E1"}}`,
	} {
		f.Add([]byte(asked + "\n"))
	}
	hello := answer(1, []byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}`))
	f.Fuzz(func(t *testing.T, sent []byte) {
		in, out := io.Pipe()
		w := &scripted{wireOver(t, "", 1<<20), make(chan string, 100)}
		w.in.In = bufio.NewReaderSize(in, 4096)
		go func() {
			defer out.Close()
			for method := range w.asked {
				text := sent
				if method == "initialize" {
					text = hello
				}
				if _, err := out.Write(text); err != nil || method != "initialize" {
					return
				}
			}
		}()
		client := mcp.NewClient(&mcp.Implementation{Name: "c"}, nil)
		session, err := client.Connect(t.Context(), w, &mcp.ClientSessionOptions{ProtocolVersion: "2025-06-18"})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = session.ListTools(t.Context(), nil)
		_ = session.Close()
		close(w.asked)
	})
}

// answer is the line that answers a request.
func answer(id int, result []byte) []byte {
	return append(append([]byte(`{"jsonrpc":"2.0","id":`+string(rune('0'+id))+`,"result":`), result...), "}\n"...)
}

// scripted is the client's end of a server that is told what is asked.
type scripted struct {
	*Transport
	asked chan string
}

func (w *scripted) Connect(context.Context) (mcp.Connection, error) { return w, nil }

func (w *scripted) Write(ctx context.Context, msg jsonrpc.Message) error {
	if r, ok := msg.(*jsonrpc.Request); ok && r.ID.IsValid() {
		w.calls.Add(ctx, r)
		w.asked <- r.Method
	}
	return nil
}
