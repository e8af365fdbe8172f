package bridge

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
)

// written is what a server wrote to its client, which goes on being written.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *written) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Split(strings.TrimSuffix(w.text.String(), "\n"), "\n")
}

// TestMessagesInAPipeThatEndsAreAnswered: each request under its own ID, and also the last
// one, which has no line end.
func TestMessagesInAPipeThatEndsAreAnswered(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","id":"a\u0041","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":[],"clientInfo":{"name":"x","version":"1"},"_meta":[]}}` +
		"\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
	for name, tt := range map[string]struct {
		input string
		want  map[string]string // by ID, a part of the answer
	}{
		"the beginning of a session": {
			"\ufeff" + hello + `{"jsonrpc":"2.0","id":1.5,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":1764115200123456789,"method":"tools/list"}`,
			map[string]string{`"a\u0041"`: `"protocolVersion":"2025-06-18"`, "1.5": `"result":{}`, "1764115200123456789": `"run_python"`},
		},
		"a run": {
			hello + `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"print(6*7)","servers":"[]"}}}`,
			map[string]string{`"a\u0041"`: `"serverInfo"`, "3": `"text":"42"`},
		},
		"a run that takes longer": {
			hello + `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_python","arguments":{"code":"import time; time.sleep(60)"}}}`,
			map[string]string{`"a\u0041"`: `"serverInfo"`, "3": "the client closed standard input before this was done"},
		},
		"odd messages": {
			hello + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_python","arguments":"{}"}}` + "\r" +
				`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run_python","arguments":[]}}` + "\r\n" +
				`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":[]}` + "\n" + `{"jsonrpc":"2.0","id":5,"method":"nope"}` + "\n" +
				`{"jsonrpc":"2.0","id":6,"method":"initialize","params":{"protocolVersion":7}}` + "\n" + `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":["x"]}}` +
				"\n" + `{"jsonrpc":"2.0","id":8,"method":"ping","params":{"_meta":{"progressToken":{}}}}` + "\n" + `{"jsonrpc":"2.0","id":9,"met`,
			map[string]string{
				`"a\u0041"`: `"serverInfo"`, "2": `"code":-32602,"message":"tools/call: \"arguments\" must be an object, not text"`, "3": "code is missing",
				"4": `"code":-32602`, "5": `"code":-32601`, "6": `"code":-32602,"message":"initialize: \"protocolVersion\" must be text, not a number"`,
				"7": `"code":-32602,"message":"resources/read: \"uri\" must be text, not a list"`, "8": `"result":{}`, "9": `"code":-32700`,
			},
		},
		"before initialize": {
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"initialize"}`,
			map[string]string{"1": `"code":-32600`, "2": `"code":-32602`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, nil, nil)
			var out written
			if err := s.Serve(t.Context(), strings.NewReader(tt.input), &out); err != nil {
				t.Error(err)
			}
			got := map[string]string{}
			for _, line := range out.lines() {
				var m struct {
					ID    json.RawMessage
					Error *struct{ Code int }
				}
				if err := json.Unmarshal([]byte(line), &m); err != nil || m.Error != nil && m.Error.Code == 0 {
					t.Errorf("%v: %s", err, line)
				}
				if strings.Contains(line, "unmarshal") || strings.Contains(line, "mcp.") || strings.Contains(line, "json:") {
					t.Errorf("in Go's words: %s", line)
				}
				got[string(m.ID)] += line
			}
			for id, part := range tt.want {
				if !strings.Contains(got[id], part) {
					t.Errorf("the answer to %s is %s, want %s", id, got[id], part)
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("%d answers, want %d", len(got), len(tt.want))
			}
		})
	}
}
