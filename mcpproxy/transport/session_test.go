package transport

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
)

// dialed opens a session that ends with the test.
func dialed(t *testing.T, s config.Server, o Dialer) *Session {
	t.Helper()
	live, _, err := filled(s, o).Dial(t.Context(), Handshake{}, elicitation.Capabilities{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(live.Close)
	return live
}

// filled returns a dialer with what each needs.
func filled(s config.Server, o Dialer) *Dialer {
	o.Server, o.StartTimeout, o.DiscoverTimeout, o.MaxMessage = s, 2*time.Minute, 5*time.Second, message.MaxSize
	o.Log, o.ClientInfo, o.Redactor = slog.New(slog.DiscardHandler), &mcp.Implementation{Name: "toolcell"}, redact.New(s)
	if o.ToolsChanged == nil {
		o.ToolsChanged = func() {}
	}
	return &o
}

// sdkOverStdio is this test binary as a server of the SDK.
func sdkOverStdio(t *testing.T) config.Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return config.Server{Name: "sdk", Transport: config.Stdio, Command: exe, Env: map[string]string{"FAKE_SERVER": "sdk", "GORACE": "atexit_sleep_ms=0"}}
}

// TestRequestsSayWhatTheSDKSays: what is said in each request of a protocol
// without sessions is the same as in the SDK's own.
func TestRequestsSayWhatTheSDKSays(t *testing.T) {
	s := dialed(t, sdkOverStdio(t), Dialer{})
	r, err := s.Request(t.Context(), MethodCallTool, &Params{Name: "meta", Arguments: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	var ours struct{ StructuredContent any }
	if err := json.Unmarshal(r.Result, &ours); err != nil {
		t.Fatal(err)
	}
	res, err := s.mcp.CallTool(t.Context(), &mcp.CallToolParams{Name: "meta"})
	if err != nil {
		t.Fatal(err)
	}
	if said, _ := ours.StructuredContent.(map[string]any); len(said) == 0 || !reflect.DeepEqual(ours.StructuredContent, res.StructuredContent) {
		t.Errorf("we say %v, the SDK %v", ours.StructuredContent, res.StructuredContent)
	}
}

func TestSessionWithoutProcessStartsNoGuard(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk"}, nil)
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	defer web.CloseClientConnections()
	g := &stdio.Guard{}
	dialed(t, config.Server{Name: "web", Transport: config.HTTP, URL: web.URL}, Dialer{Guard: g}).Close()
	if g.Running() {
		t.Error("it runs a guard")
	}
	dialed(t, sdkOverStdio(t), Dialer{Guard: g}).Close()
	if !g.Running() {
		t.Error("a process is not guarded")
	}
	g.Close()
}

// TestListsOfAServerThatHasOnlyTools: the other lists are empty, and not offered.
func TestListsOfAServerThatHasOnlyTools(t *testing.T) {
	s := dialed(t, sdkOverStdio(t), Dialer{})
	for method, want := range map[string]bool{MethodListTools: true, MethodListPrompts: false, MethodListResources: false, MethodListTemplates: false} {
		has := 0
		for items, err := range s.Pages(t.Context(), method) {
			if err != nil {
				t.Fatal(method, err)
			}
			has += len(items)
		}
		if has > 0 != want || s.Offers(method) != want {
			t.Errorf("%s has %d items, and is offered: %v", method, has, s.Offers(method))
		}
	}
}
