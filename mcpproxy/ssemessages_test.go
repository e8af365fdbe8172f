package mcpproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// rawSSE is a server over HTTP and SSE, of 2024-11-05, that ends its lines with eol. A
// call of a tool is answered by what say returns for it, as events; got is told of
// answers to the server.
func rawSSE(eol string, say func(tool, id string) string, got func(body string)) http.Handler {
	var mu sync.Mutex
	var stream http.ResponseWriter
	send := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.WriteString(stream, strings.ReplaceAll(text, "\n", eol))
		_ = http.NewResponseController(stream).Flush()
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			mu.Lock()
			stream = w
			mu.Unlock()
			send("\ufeffevent: endpoint\ndata: /messages\n\n")
			<-r.Context().Done()
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		var msg fakeRequest
		if err := json.Unmarshal(body, &msg); err != nil {
			return
		}
		id := string(msg.ID)
		switch msg.Method {
		case "":
			got(string(body))
		case "initialize":
			send(fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":[],"serverInfo":{"name":"raw","version":1}}}`, id) + "\n\n")
		case "tools/list":
			send(fmt.Sprintf(`event: message`+"\n"+`data: {"jsonrpc":"2.0","id":%s,`+"\n"+`data: "result":{"tools":[{"name":"a"},{"name":"b"}]}}`, id) + "\n\n")
		case "tools/call":
			send(say(msg.Params.Name, id))
		}
	})
}

// TestUnreadableAnswersOverSSE fail their calls at once, and others go on.
func TestUnreadableAnswersOverSSE(t *testing.T) {
	for _, eol := range []string{"\n", "\r", "\r\n"} {
		for name, tt := range map[string]struct{ answer, failure string }{
			"right":            {`data: {"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`, ""},
			"comments":         {": ping\nretry: 5\nevent: other\ndata: {\n\n" + `data: {"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`, ""},
			"[DONE]":           {"data: [DONE]\n\n" + `data: {"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`, ""},
			"an id as text":    {`data: {"jsonrpc":"2.0","id":"ID","result":{"content":[]}}`, ""},
			"an empty list":    {`data: {"jsonrpc":"2.0","id":ID,"result":[]}`, ""},
			"NaN":              {`data: {"jsonrpc":"2.0","id":ID,"result":{"a":NaN}}`, "it is not JSON from byte"},
			"cut off":          {`data: {"jsonrpc":"2.0","id":ID,"result":{"a":[`, "it is cut off"},
			"no id":            {`data: {"result":{"a":[`, "it is cut off"},
			"an error":         {`data: {"jsonrpc":"2.0","id":ID,"error":"broken"}`, "broken"},
			"an error, null":   {`data: {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`, "Parse error"},
			"no id of ours":    {`data: {"jsonrpc":"2.0","id":1.5,"result":{}}`, "it has the id 1.5"},
			"too deep":         {`data: {"jsonrpc":"2.0","id":ID,"result":{"a":` + strings.Repeat("[", 1500) + strings.Repeat("]", 1500) + `}}`, "nests deeper than 1000"},
			"much too deep":    {`data: {"jsonrpc":"2.0","id":ID,"result":{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}}`, "nests deeper than 1000"},
			"a text as result": {`data: {"jsonrpc":"2.0","id":ID,"result":"x"}`, "result is not an object"},
		} {
			t.Run(fmt.Sprintf("%s %q", name, eol), func(t *testing.T) {
				t.Parallel()
				s := web(t, config.SSE, rawSSE(eol, func(tool, id string) string {
					if tool == "b" {
						return `data: {"jsonrpc":"2.0","id":` + id + `,"result":{"content":[],"structuredContent":{"ok":true}}}` + "\n\n"
					}
					return strings.ReplaceAll(tt.answer, "ID", id) + "\n\n"
				}, func(string) {}))
				p := proxyFor(t, Options{}, s)
				mustCall(t, p, "b", `{}`)
				_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "a"})
				if tt.failure == "" && err != nil {
					t.Fatal(err)
				}
				if tt.failure != "" {
					mcptest.WantError(t, err, `calling tool "a" of server "fake"`, tt.failure)
					if unread := strings.Contains(err.Error(), "cannot be read"); errors.Is(err, ErrCallLost) != unread {
						t.Errorf("lost = %v: %v", !unread, err)
					}
				}
				mustCall(t, p, "b", `{}`)
			})
		}
	}
}

// TestWhatServersAskIsAnsweredUnderTheirIDs, byte for byte, over SSE and streamable HTTP.
func TestWhatServersAskIsAnsweredUnderTheirIDs(t *testing.T) {
	for _, id := range []string{`1764115200123456789`, `1.5`, `1e3`, `"a\u0041\n"`, `7`, `0`} {
		answers := make(chan string, 10)
		ask := `data: {"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` + "\n\n"
		right := func(call string) string {
			return `data: {"jsonrpc":"2.0","id":` + call + `,"result":{"content":[]}}` + "\n\n"
		}
		overSSE := rawSSE("\n", func(_, call string) string { return ask + right(call) }, func(body string) { answers <- body })
		overHTTP := answersTo(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ask+right(r.Header.Get("Test-Id")))
		}, answers)
		for kind, h := range map[config.Transport]http.Handler{config.SSE: overSSE, config.HTTP: overHTTP} {
			p := proxyFor(t, Options{}, web(t, kind, h))
			tool := map[config.Transport]string{config.SSE: "a", config.HTTP: "bad"}[kind]
			if _, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: tool}); err != nil {
				t.Fatal(err)
			}
			if got, want := <-answers, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`; got != want {
				t.Errorf("%s: %s, want %s", kind, got, want)
			}
		}
	}
}

// answersTo is answers that keeps what the client answers.
func answersTo(call http.HandlerFunc, got chan<- string) http.Handler {
	inner := answers(call)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			var msg fakeRequest
			if json.Unmarshal(body, &msg) == nil && msg.Method == "" {
				got <- string(body)
				w.WriteHeader(http.StatusAccepted)
				return
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
		}
		inner(w, r)
	})
}
