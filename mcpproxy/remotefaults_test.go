package mcpproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// answers is an MCP server over HTTP, from before 2026, whose calls of a tool
// end in call.
func answers(call http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "no", http.StatusMethodNotAllowed)
			return
		}
		var msg fakeRequest
		if err := json.NewDecoder(r.Body).Decode(&msg); err != nil {
			http.Error(w, "no JSON", http.StatusBadRequest)
			return
		}
		result := ""
		switch msg.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bad","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"echo"},{"name":"bad"}]}`
		case "tools/call":
			if msg.Params.Name == "bad" {
				r.Header.Set("Test-Id", string(msg.ID))
				call(w, r)
				return
			}
			result = `{"content":[],"structuredContent":{"ok":true}}`
		case "server/discover":
			http.NotFound(w, r)
			return
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, msg.ID, result)
	}
}

func status(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Retry-After", "17")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// answer answers with this body.
func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "ID", r.Header.Get("Test-Id")))
	}
}

// stream answers with these events and then ends, or stays.
func stream(stay bool, events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = io.WriteString(w, strings.ReplaceAll(e, "ID", r.Header.Get("Test-Id"))+"\n\n")
		}
		_ = http.NewResponseController(w).Flush()
		if stay {
			<-r.Context().Done()
		}
	}
}

// endless writes until the other side has enough.
func endless(contentType, begin, piece string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, begin)
		chunk := strings.Repeat(piece, 1<<20/len(piece))
		for {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}
}

const page = `<html><head><title>Sign in &amp; more</title><script>x</script></head><body>` + "Please sign in</body></html>"

func TestBadAnswersToCallsHaveClearErrorsAndHurtNoOtherCall(t *testing.T) {
	const good = `data: {"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"late":1}}}`
	for name, tt := range map[string]struct {
		call http.HandlerFunc
		lost bool
		want []string // none: the call succeeds
	}{
		"html page":             {status(200, "text/html; charset=utf-8", page), false, []string{"answered with text/html instead of MCP", "Sign in"}},
		"long html page":        {status(200, "text/html", "<p>"+strings.Repeat("long ", 100_000)), false, []string{"long long", "…"}},
		"no content type":       {status(200, "", "hello"), false, []string{"answered with something without a Content-Type instead of MCP: hello"}},
		"accepted, no answer":   {status(202, "", ""), false, []string{"answered with nothing instead of MCP"}},
		"garbage as json":       {status(200, "application/json", "][ garbage"), true, []string{"is not JSON-RPC", "][ garbage"}},
		"empty json":            {status(200, "application/json", ""), true, []string{"the server's answer is not JSON-RPC: it is empty"}},
		"no answer in it":       {status(200, "application/json", `{"jsonrpc":"2.0","method":"notifications/message"}`), true, []string{"gave no answer"}},
		"403":                   {status(403, "text/html", page), false, []string{"does not allow this (403 Forbidden): Sign in"}},
		"404":                   {status(404, "text/plain", "no such thing"), false, []string{"404 Not Found", "no such thing", "test.json"}},
		"429":                   {status(429, "text/plain", "slow down"), false, []string{"429 Too Many Requests", "17 s", "slow down"}},
		"500":                   {status(500, "text/plain", "the disk is on fire"), false, []string{"failed (500 Internal Server Error)", "the disk is on fire"}},
		"502":                   {status(502, "text/html", page), true, []string{"gave no answer (502 Bad Gateway)"}},
		"error of the protocol": {status(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad arguments"}}`), false, []string{`of server "fake": bad arguments`}},
		"stream that ends":      {stream(false, ": hello"), true, []string{"ended its answer before it was whole"}},
		"garbage in a stream":   {stream(true, "data: ][ garbage"), true, []string{"not JSON-RPC", "][ garbage"}},
		"half an event":         {stream(false, `data: {"jsonrpc":"2.0","id":ID,"res`), true, []string{"not JSON-RPC"}},
		"NaN as json":           {answer(`{"jsonrpc":"2.0","id":ID,"result":{"a":NaN}}`), true, []string{"not JSON-RPC: it is not JSON from byte", "NaN"}},
		"another id":            {answer(`{"jsonrpc":"2.0","id":77777,"result":{}}`), true, []string{"answered another request (its id is 77777)"}},
		"an id of 1.5":          {answer(`{"jsonrpc":"2.0","id":1.5,"result":{}}`), true, []string{"it has the id 1.5"}},
		"an id of text":         {answer(`{"jsonrpc":"2.0","id":"x","result":{}}`), true, []string{`it has the id "x"`}},
		"an id as text":         {answer(`{"jsonrpc":"2.0","id":"ID","result":{}}`), false, nil},
		"an id of null":         {answer(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`), false, []string{"Parse error"}},
		"an error as text":      {answer(`{"jsonrpc":"2.0","id":ID,"error":"it is broken"}`), false, []string{"it is broken"}},
		"a code of text":        {answer(`{"jsonrpc":"2.0","id":ID,"error":{"code":"E1","message":"it is broken"}}`), false, []string{"it is broken"}},
		"a byte order mark":     {answer("\ufeff" + `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`), false, nil},
		"UTF-16":                {answer("\xff\xfe{\x00}\x00"), true, []string{"UTF-16"}},
		"a list as result":      {answer(`{"jsonrpc":"2.0","id":ID,"result":[]}`), false, nil},
		"a text as result":      {answer(`{"jsonrpc":"2.0","id":ID,"result":"x"}`), false, []string{"result is not an object"}},
		"cut off":               {answer(`{"jsonrpc":"2.0","id":ID,"result":{"content":[`), true, []string{"it is cut off after"}},

		"NaN in a stream":             {stream(true, `data: {"jsonrpc":"2.0","id":ID,"result":{"a":NaN}}`), true, []string{"not JSON-RPC: it is not JSON from byte", "NaN"}},
		"another id in a stream":      {stream(true, `data: {"jsonrpc":"2.0","id":77777,"result":{}}`), true, []string{"answered another request (its id is 77777)"}},
		"an id of null in a stream":   {stream(true, `data: {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`), false, []string{"Parse error"}},
		"[DONE] behind the answer":    {stream(true, good, "data: [DONE]"), false, nil},
		"[DONE] before the answer":    {stream(true, "data: [DONE]", good), false, nil},
		"a byte order mark in stream": {stream(true, "\ufeff"+good), false, nil},
		"lines that end with CR":      {stream(true, strings.ReplaceAll("event: message\n"+good+"\n\n", "\n", "\r")), false, nil},
		"lines that end with CR LF":   {stream(true, strings.ReplaceAll("event: message\n"+good+"\n\n", "\n", "\r\n")), false, nil},
		"an answer in many lines":     {stream(true, "data: {\"jsonrpc\":\"2.0\",\ndata:\"id\":ID,\ndata\ndata: \"result\":{\"content\":[]}}"), false, nil},

		"connection cut": {func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := w.(http.Hijacker).Hijack()
			c.Close()
		}, true, []string{"broke off"}},
		"endless json":            {endless("application/json", `{"jsonrpc":"2.0","id":1,"result":"`, "x"), true, []string{"sent a message longer than 4 MiB"}},
		"endless event":           {endless("text/event-stream", "data: ", "x"), true, []string{"sent a message longer than 4 MiB"}},
		"endless lines":           {endless("text/event-stream", "", "data: x\n"), true, []string{"sent a message longer than 4 MiB"}},
		"endless page":            {endless("text/html", "<p>", "x"), false, []string{"instead of MCP"}},
		"comments and old fields": {stream(true, ":", "retry: x\nnonsense\nevent: message\n"+good), false, nil},
		"events of other names":   {stream(true, "event: ping\ndata: now", "event: message\n"+good), false, nil},
		"an id without data":      {stream(true, "id: 1\ndata:", good), false, nil},
		"many notifications":      {stream(true, strings.Repeat(`data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`+"\n\n", 50_000)+good), false, nil},
		"a batch":                 {stream(true, `data: [{"jsonrpc":"2.0","method":"notifications/message"},`+"\n"+`data: {"jsonrpc":"2.0","id":ID,"result":{"content":[]}}]`), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := web(t, config.HTTP, answers(tt.call))
			p := proxyFor(t, Options{maxMessage: 4 << 20}, s)
			mustCall(t, p, "echo", `{}`)
			live := p.current().upstreams[0].live
			_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "bad"})
			if tt.want == nil && err != nil {
				t.Fatal(err)
			}
			if tt.want != nil {
				mcptest.WantError(t, err, append(tt.want, `calling tool "bad" of server "fake"`)...)
				if len(err.Error()) > 600 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
				if errors.Is(err, ErrCallLost) != tt.lost {
					t.Errorf("lost = %v: %v", !tt.lost, err)
				}
			}
			mustCall(t, p, "echo", `{}`)
			if p.current().upstreams[0].live != live {
				t.Error("the session did not survive it")
			}
		})
	}
}

func TestRemoteServersThatCannotBeReachedSayWhy(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	defer tls.Close()
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	for name, tt := range map[string]struct {
		transport config.Transport
		url       string
		handler   http.HandlerFunc
		want      []string
	}{
		"nothing listens":     {config.Remote, "http://127.0.0.1:1", nil, []string{"nothing listens there", "test.json"}},
		"bad certificate":     {config.HTTP, tls.URL, nil, []string{"signed by an authority that this host does not trust", "SSL_CERT_FILE"}},
		"https to http":       {config.HTTP, "", status(200, "", ""), []string{"does not speak TLS", "http://"}},
		"http to https":       {config.HTTP, strings.Replace(tls.URL, "https", "http", 1), nil, []string{"wants https"}},
		"401 without a login": {config.Remote, "", status(401, "", ""), []string{"the server needs a login; in a terminal: toolcell servers login fake"}},
		"403":                 {config.Remote, "", status(403, "text/plain", "not you"), []string{"403 Forbidden", "not you"}},
		"neither of both":     {config.Remote, "", status(404, "text/html", page), []string{"404 Not Found", "as an SSE server"}},
		"a page":              {config.SSE, "", status(200, "text/html", page), []string{"answered with text/html instead of MCP: Sign in"}},
		"no endpoint":         {config.SSE, "", stream(true, ": hello"), []string{"was not ready within 500ms", "the endpoint event"}},
		"another event first": {config.SSE, "", stream(true, "data: {}"), []string{"instead of the address to send to"}},
		"the stream ends":     {config.SSE, "", stream(false), []string{"closed its stream of events"}},
		"endpoint of another": {config.SSE, "", stream(true, "event: endpoint\ndata: http://127.0.0.2:9/steal"), []string{"to another host, http://127.0.0.2:9"}},
		"endless first event": {config.SSE, "", endless("text/event-stream", "data: ", "x"), []string{"longer than 4 MiB"}},
		"never answers":       {config.HTTP, "", silent, []string{"was not ready within 500ms"}},
		"drips":               {config.HTTP, "", drip, []string{"was not ready within 500ms"}},
		"not an address":      {config.HTTP, "::::", nil, []string{"not an http or https address"}},
		"no host of the name": {config.HTTP, "http://no-such-host.invalid/mcp", nil, []string{"cannot reach http://no-such-host.invalid"}},
		"redirects in a circle": {config.HTTP, "", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}, []string{"in a circle"}},
		"redirect to a GET": {config.HTTP, "", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/new", http.StatusMovedPermanently) }, []string{"/new in a way that loses the message"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := config.Server{Name: "fake", Alias: "fake", Transport: tt.transport, URL: tt.url, Source: "test.json"}
			if tt.handler != nil {
				s = web(t, tt.transport, tt.handler)
			}
			if name == "https to http" {
				s.URL = strings.Replace(s.URL, "http:", "https:", 1)
			}
			o := Options{maxMessage: 4 << 20}
			if strings.Contains(strings.Join(tt.want, ""), "500ms") {
				o.StartTimeout = 500 * time.Millisecond
			}
			p := proxyFor(t, o, s)
			_, err := p.Tools(t.Context(), "fake")
			mcptest.WantError(t, err, append(tt.want, `starting server "fake": `)...)
			if strings.Contains(err.Error(), "toolcell/") || strings.Count(err.Error(), `"fake"`) > 1 {
				t.Errorf("the error shows how we are made: %v", err)
			}
			if st := p.Servers()[0]; st.Status != "failed" || st.Error != err.Error() {
				t.Errorf("%+v", st)
			}
		})
	}
}

// silent takes the request and never answers.
func silent(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client left
	<-r.Context().Done()
}

// drip sends a byte now and then, and never comes to an end.
func drip(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		_, _ = io.WriteString(w, " ")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

func TestRefusedAuthorizationHeaderIsNamed(t *testing.T) {
	s := web(t, config.HTTP, status(401, "text/plain", "token tok-123456789 is unknown"))
	s.Headers = map[string]string{"Authorization": "Bearer tok-123456789"}
	_, err := proxyFor(t, Options{}, s).Tools(t.Context(), "fake")
	mcptest.WantError(t, err, "does not accept the Authorization header of the entry in test.json", "is unknown")
	if strings.Contains(err.Error(), "tok-123") || strings.Contains(err.Error(), "servers login") {
		t.Errorf("%v", err)
	}
}

func TestServerThatHangsOnDiscoverGetsTheOlderHandshake(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	h := answers(nil)
	s := web(t, config.HTTP, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "server/discover" {
			silent(w, r)
			return
		}
		h(w, r)
	}))
	p := proxyFor(t, Options{}, s)
	mustCall(t, p, "echo", `{}`)
	if !p.current().upstreams[0].record.Info().Legacy {
		t.Error("it is not remembered")
	}
}

func TestClosingRemotesLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for _, kind := range []config.Transport{config.HTTP, config.SSE} {
		func() {
			notes := &noteBook{unblock: make(chan struct{})}
			h := streamable(notes, nil)
			if kind == config.SSE {
				h = sseHandler(notes)
			}
			srv := httptest.NewServer(h)
			defer srv.Close()
			p := New(config.Config{Servers: []config.Server{{Name: "fake", Alias: "fake", Transport: kind, URL: srv.URL}}}, Options{IdleTimeout: time.Hour})
			mustCall(t, p, "echo", `{}`)
			ended := make(chan error, 1)
			go func() {
				_, err := p.Call(t.Context(), CallRequest{Server: "fake", Tool: "hang"})
				ended <- err
			}()
			eventually(t, "the call", func() bool { return notes.has("hanging") })
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			close(notes.unblock)
			mcptest.WantError(t, <-ended, "shut down")
		}()
	}
	eventually(t, "end of all goroutines", func() bool { return runtime.NumGoroutine() <= before })
}
