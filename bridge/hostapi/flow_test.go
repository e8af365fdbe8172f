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

// askedServer is up, and authorizes calls and reads.
type askedServer struct{ oneServer }

func (askedServer) Call(ctx context.Context, r mcpproxy.CallRequest) (mcpproxy.CallResult, error) {
	err := r.Run.Authorize(ctx, policy.Call{Server: policy.Server{Name: r.Server}, Tool: policy.Tool{Name: r.Tool}, Arguments: r.Arguments, Allowed: r.Allowed})
	return mcpproxy.CallResult{JSON: json.RawMessage(`{}`)}, err
}

func (askedServer) ReadResource(context.Context, string, string) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

// forTheRun is a user who allows everything for the rest of the run, where that is offered.
type forTheRun struct {
	Asker
	granted map[string]bool
	asked   int
}

func (f *forTheRun) Approach(bool) func()        { return func() {} }
func (f *forTheRun) Granted(c consent.Call) bool { return f.granted[c.Tool] }
func (f *forTheRun) Ask(_ context.Context, c consent.Call, _ func()) error {
	f.asked++
	f.granted[c.Tool] = !c.Once
	return nil
}

// TestAToolThatIsCalledLikeAReadIsNotAllowedByIt, nor the other way around.
func TestAToolThatIsCalledLikeAReadIsNotAllowedByIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[servers.up]\nask = ['*']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const call, read = "call_tool", "read_resource"
	for _, c := range []struct {
		methods []string
		asked   int
	}{{[]string{read, read}, 1}, {[]string{read, call}, 2}, {[]string{call, read}, 2}, {[]string{call, call}, 2}} {
		user := &forTheRun{granted: map[string]bool{}}
		api := New(Options{Upstreams: askedServer{}, Granted: map[string]bool{"up": true}, Policy: policy.Load(file, true, nil).NewRun(), Asker: user})
		for _, method := range c.methods {
			if _, err := ask(t, api, method, json.RawMessage(`{"server":"up","tool":"resources/read","uri":"x:","arguments":{},"unchecked":true}`)); err != nil {
				t.Fatal(err)
			}
		}
		if user.asked != c.asked {
			t.Errorf("%v: asked %d times, want %d", c.methods, user.asked, c.asked)
		}
	}
}

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
