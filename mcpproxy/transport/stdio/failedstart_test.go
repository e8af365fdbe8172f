package stdio

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// startShell starts a shell script as a server.
func startShell(t *testing.T, script string) *Transport {
	t.Helper()
	s := config.Server{Name: "s", Command: "/bin/sh", Args: []string{"-c", script}, Dir: t.TempDir()}
	w, err := Start(t.Context(), s, OnHost(nil), redact.New(s), slog.New(slog.DiscardHandler), message.NewNotifications(func() {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(); w.Stop() })
	return w
}

// TestAFailedStartIsExplained by what ended it, with what the server wrote. A server that took
// server/discover is suspect: it may know only the older handshake.
func TestAFailedStartIsExplained(t *testing.T) {
	const logs, ready = "read -r line; echo no key >&2; ", `echo '{"jsonrpc":"2.0","id":"a","method":"ping"}'; `
	late := errors.New("was not ready in time")
	for _, tt := range []struct {
		name, method, script string
		fails                error // with what the handshake failed, if not with the end of the output or an answer
		cause                error // why we ended it
		suspect              bool
		want                 string
	}{
		{"it exits", message.MethodDiscover, logs + "exit 3", nil, nil, true, "exited: exit status 3; its stderr ended: no key"},
		{"it exits, without discover", message.MethodInitialize, logs + "exit 3", nil, nil, false, "exited: exit status 3; its stderr ended: no key"},
		{
			"no answer to discover", message.MethodDiscover, logs + ready + "cat >/dev/null", mcp.ErrConnectionClosed, message.ErrNoDiscover, true,
			"did not answer server/discover; its stderr ended: no key",
		},
		{"too late", message.MethodDiscover, logs + ready + "cat >/dev/null; exit 3", io.EOF, late, true, "was not ready in time; its stderr ended: no key"},
		{"too late, without discover", message.MethodInitialize, logs + ready + "cat >/dev/null; exit 3", io.EOF, late, false, "was not ready in time; its stderr ended: no key"},
		{
			"no MCP", message.MethodDiscover, logs + `echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"what?"}}'; cat >/dev/null`, nil, nil, true,
			`it does not speak MCP: it answered "what?" to initialize; its stderr ended: no key`,
		},
		{
			"a message without an end", message.MethodDiscover, logs + `printf '{'; exec cat /dev/zero`, mcp.ErrConnectionClosed, nil, true,
			"sent a message longer than 1 MiB; its stderr ended: no key",
		},
		{"it does not end by itself", message.MethodDiscover, logs + ready + "exec sleep 600", io.EOF, late, true, "was not ready in time; its stderr ended: no key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := startShell(t, tt.script)
			w.limit = 1 << 20
			if err := w.Write(t.Context(), request(1, tt.method)); err != nil {
				t.Fatal(err)
			}
			msg, failed := w.Read(t.Context())
			if answer, ok := msg.(*jsonrpc.Response); ok {
				failed = answer.Error
			}
			if tt.fails != nil {
				failed = tt.fails
			}
			if errors.Is(failed, io.EOF) && tt.cause == nil {
				w.WaitClosed() // or a slow one would be ended by us
			}
			suspect, why := w.Fail(failed, tt.cause)
			if suspect != tt.suspect || why.Error() != tt.want {
				t.Errorf("suspect: %v, %q\nwant %q", suspect, why, tt.want)
			}
			if tt.cause != nil && !errors.Is(why, tt.cause) {
				t.Errorf("%v hides its cause", why)
			}
			if running(pidOf(w)) {
				t.Error("it still runs")
			}
		})
	}
}

// TestTheOutputOfAServerThatWorkedIsInTheLog: another start would not show it.
func TestTheOutputOfAServerThatWorkedIsInTheLog(t *testing.T) {
	w := startShell(t, "read -r line; echo no key >&2; exit 3")
	w.Begin(t.Context(), nil, false)
	if err := w.Write(t.Context(), request(1, "ping")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if got := WithoutOutput(w.Ended()).Error(); !strings.HasSuffix(got, "; its stderr is shown by: the log, with TOOLCELL_LOG_LEVEL=DEBUG") {
		t.Errorf("the error: %s", got)
	}
}
