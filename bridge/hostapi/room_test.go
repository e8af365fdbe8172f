package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// saving are parameters of save_tool with a large source.
func saving(name string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"name":%q,"source":"#%s"}`, name, strings.Repeat("x", savedtools.MaxSource-1)))
}

// TestRequestsGiveBackTheirRoom: more may follow each other than work at once.
func TestRequestsGiveBackTheirRoom(t *testing.T) {
	api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: noServers(t), Saved: savedtools.Open(t.TempDir(), "")})
	for _, c := range []struct {
		method string
		params json.RawMessage
	}{
		{"save_tool", saving("large")},
		{"saved_source", json.RawMessage(`{"name":"large"}`)},
		{"search_tool_docs", json.RawMessage(`{"query":"x"}`)},
		{"tool_signature", json.RawMessage(`{"server":"none","tool":"f"}`)},
	} {
		synctest.Test(t, func(t *testing.T) { // its time passes only when all wait
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			for i := range memory.Small / (savedtools.MaxSource * memory.SavedTool) * 2 {
				if _, err := api.carryOut(ctx, c.method, c.params); errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%s: request %d: %v", c.method, i, err)
				}
			}
		})
	}
}

// TestRequestsOfARunThatHasEndedDoNothing, whatever they wait for.
func TestRequestsOfARunThatHasEndedDoNothing(t *testing.T) {
	store := privateStore(t)
	api := newAPI(testOptions{Policy: policy.None().NewEnforcer(), Upstreams: noServers(t), Saved: store})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	params := map[string]json.RawMessage{"save_tool": saving("late"), "remove_tool": nil, "saved_source": nil, "search_tool_docs": nil, "tool_signature": nil}
	for method, raw := range params {
		answer, err := api.Answer(ended, call(method, "clean", raw))
		if !errors.Is(err, context.Canceled) || answer.JSON != nil || answer.Make != nil {
			t.Errorf("%s: %v, %s", method, err, answer.JSON)
		}
	}
	for _, method := range []string{"save_tool", "saved_source"} {
		synctest.Test(t, func(t *testing.T) {
			release, err := memory.Take(t.Context(), 1, memory.Small)
			if err != nil {
				t.Fatal(err)
			}
			defer release()
			ctx, cancel := context.WithCancel(t.Context())
			answered := make(chan error, 1)
			go func() {
				_, err := api.Answer(ctx, call(method, "clean", params[method]))
				answered <- err
			}()
			synctest.Wait() // until it waits for memory
			cancel()
			if err := <-answered; !errors.Is(err, context.Canceled) {
				t.Errorf("%s without memory: %v", method, err)
			}
		})
	}
	if names, err := store.Names(); err != nil || !slices.Equal(names, []string{"balance", "clean"}) {
		t.Errorf("saved are %q, %v", names, err)
	}
}

func call(method, name string, raw json.RawMessage) runner.Call {
	c := runner.Call{Method: method, Raw: raw}
	c.Params.Name, c.Params.Query, c.Params.Server, c.Params.Tool = name, "x", "none", "f"
	return c
}
