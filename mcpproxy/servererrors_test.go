package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestAServerThatEndsDuringAReadSaysHow: nothing is lost then.
func TestAServerThatEndsDuringAReadSaysHow(t *testing.T) {
	got := filepath.Join(t.TempDir(), "lines")
	p := proxyFor(t, Options{}, fake(t, "FAKE_LINES", got, "FAKE_OFFERS", `,"resources":{}`))
	pid := structured[map[string]int](t, mustCall(t, p, "get-pid", `{}`))["pid"]
	done := make(chan error, 1)
	go func() {
		_, err := p.read(t.Context(), "fake", ReadResource, "fake://hang", nil)
		done <- err
	}()
	eventually(t, "the request", func() bool {
		text, _ := os.ReadFile(got)
		return strings.Contains(string(text), "fake://hang")
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := <-done
	const want = `reading resource "fake://hang" of server "fake": the server exited: signal: killed`
	if err == nil || !strings.HasPrefix(err.Error(), want) || errors.Is(err, ErrCallLost) || strings.Contains(err.Error(), "%!") {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestAReadThatItsCallerEndsSaysWhyAlone, and the server stays, whatever the reason wraps.
func TestAReadThatItsCallerEndsSaysWhyAlone(t *testing.T) {
	s, _ := asker(t, "2026")
	p := proxyFor(t, Options{}, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := fmt.Errorf("the run has ended: %w", io.EOF)
	_, err := p.read(ctx, "fake", GetPrompt, "p", json.RawMessage(`{}`), userFunc(func(context.Context, Elicitation) (ElicitationReply, error) {
		cancel(gone)
		return ElicitationReply{}, context.Cause(ctx)
	}))
	const want = `getting prompt "p" of server "fake": the run has ended: EOF`
	if err == nil || err.Error() != want || p.Servers()[0].Status != "ready" {
		t.Errorf("got %v\nwant %s; the server is %s", err, want, p.Servers()[0].Status)
	}
}

// TestErrorsSayIfTheyHaveWordsOfAServer, which are not to be trusted.
func TestErrorsSayIfTheyHaveWordsOfAServer(t *testing.T) {
	ofWeb := func(h http.HandlerFunc) *Proxy { return proxyFor(t, Options{}, web(t, config.HTTP, h)) }
	badCall := func(call http.HandlerFunc) error {
		_, err := ofWeb(answers(call)).Call(t.Context(), CallRequest{Server: "fake", Tool: "bad"})
		return err
	}
	ofPipe := proxyFor(t, Options{}, fake(t))
	call := func(server, tool, args string) error {
		_, err := ofPipe.Call(t.Context(), CallRequest{Server: server, Tool: tool, Arguments: json.RawMessage(args)})
		return err
	}
	_, refusedStart := ofWeb(func(w http.ResponseWriter, r *http.Request) {
		var m fakeRequest
		if json.NewDecoder(r.Body).Decode(&m) == nil {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"go away"}}`, m.ID)
		}
	}).Tools(t.Context(), "fake")
	for name, tt := range map[string]struct {
		err  error
		said bool
		text string
	}{
		"stderr":                {call("fake", "crash", `{}`), true, "out of cheese"},
		"an error of a call":    {call("fake", "refuse", `{}`), true, "bad arguments"},
		"an error of the start": {refusedStart, true, "go away"},
		"a page":                {badCall(status(500, "text/plain", "ask your admin")), true, "ask your admin"},
		"no such server":        {call("other", "echo", `{}`), false, "other"},
		"no object":             {call("fake", "echo", `[]`), false, "not a JSON object"},
	} {
		mcptest.WantError(t, tt.err, tt.text)
		if SaidByServer(tt.err) != tt.said {
			t.Errorf("%s: SaidByServer(%v) = %v", name, tt.err, !tt.said)
		}
	}
}
