package hostapi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// refusingServer is up, and answers each call with an error before it is authorized, as
// one does that cannot be started.
type refusingServer struct{ oneServer }

func (refusingServer) Call(context.Context, mcpproxy.CallRequest) (mcpproxy.CallResult, error) {
	return mcpproxy.CallResult{}, fmt.Errorf("starting server: %w", &mcpproxy.RemoteError{Message: "no license for Ada Lovelace"})
}

func (refusingServer) AwaitTools(context.Context, string) error {
	return fmt.Errorf("starting server: %w", &mcpproxy.RemoteError{Message: "no license for Ada Lovelace"})
}

// TestErrorsOfPrivateServersCountAsRead, also of one that gave nothing else.
func TestErrorsOfPrivateServersCountAsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[servers.up]\nprivate = true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"call_tool", "list_tools"} {
		marks := &consent.Marks{}
		api := New(Options{Upstreams: refusingServer{}, Granted: map[string]bool{"up": true}, Policy: policy.Load(file, true, nil).NewRun(), Marks: marks})
		for range 2 {
			if _, err := ask(t, api, method, json.RawMessage(`{"server":"up","tool":"f","arguments":{},"unchecked":true}`)); err == nil {
				t.Fatal("no error")
			}
		}
		if got := marks.Reads(); !slices.Equal(got, []string{"up.error"}) {
			t.Errorf("%s: read %v", method, got)
		}
	}
}
