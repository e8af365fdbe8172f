package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci"
)

// effectTools are the tools of a server whose calls end in every way.
func effectTools(hanging chan<- struct{}) fakeUpstreams {
	return fakeUpstreams{"up": {
		"write": func(context.Context, json.RawMessage) (string, error) { return "ok", nil },
		"read":  func(context.Context, json.RawMessage) (string, error) { return "ok", nil },
		"fail":  func(context.Context, json.RawMessage) (string, error) { return "", errors.New("no") },
		"refuse": func(context.Context, json.RawMessage) (string, error) {
			return "", &jsonrpc.Error{Code: -32602, Message: "bad"}
		},
		"crash": func(context.Context, json.RawMessage) (string, error) { return "", bridgetest.ErrCrash },
		"hang": func(ctx context.Context, _ json.RawMessage) (string, error) {
			hanging <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		},
	}}
}

const callAll = `
import asyncio
await mcp_up.write(n=1)
await mcp_up.read(n=2)
for tool in (mcp_up.fail, mcp_up.refuse, mcp_up.crash):
    try: await tool(n=3)
    except Exception as e: pass
await mcp_up.write(n=4)
`

// TestRunThatEndsBadlyListsItsCalls has a run end in every way after the same
// calls, each with one still in flight if the run does not end by itself.
func TestRunThatEndsBadlyListsItsCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many Pythons")
	}
	const hang = "await asyncio.gather(mcp_up.hang(n=5), mcp_up.read())"
	for name, tt := range map[string]struct {
		end, status string
		oom         bool
		stop        func(s *Runs, cancel context.CancelCauseFunc) // once a call hangs
	}{
		"error":           {"1/0", StatusError, false, nil},
		"exit":            {"import os; os._exit(3)", StatusError, false, nil},
		"broken protocol": {"import os; os.write(3, b'\\xff' * 100); import time; time.sleep(60)", StatusError, false, nil},
		"memory limit":    {"import os; os.kill(os.getpid(), 9)", StatusMemory, true, nil},
		"timeout":         {hang, StatusTimeout, false, func(_ *Runs, cancel context.CancelCauseFunc) { cancel(runner.ErrTimeout) }},
		"cancelled":       {hang, StatusCancelled, false, func(_ *Runs, cancel context.CancelCauseFunc) { cancel(nil) }},
		"closed":          {hang, StatusCancelled, false, func(s *Runs, _ context.CancelCauseFunc) { go s.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			hanging := make(chan struct{}, 1)
			s := newServer(t, effectTools(hanging), func(o *Options) {
				if tt.oom {
					o.Sandboxes = withExit(o.Sandboxes, func(exit oci.Exit, err error) (oci.Exit, error) {
						exit.OOM = true
						return exit, err
					})
				}
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			req := Request{Code: callAll + tt.end, Servers: []string{"up"}, Timeout: 2 * time.Minute}
			want := []gate.CallRecord{
				{Server: "up", Tool: "write", Arguments: `{"n": 1}`, Outcome: gate.CallDone},
				{Server: "up", Tool: "write", Arguments: `{"n": 4}`, Outcome: gate.CallDone},
				{Server: "up", Tool: "crash", Arguments: `{"n": 3}`, Outcome: gate.CallUnknown},
			}
			reads := 1
			if tt.stop != nil {
				want, reads = append(want, gate.CallRecord{Server: "up", Tool: "hang", Arguments: `{"n": 5}`, Outcome: gate.CallUnknown}), 2
				go func() {
					<-hanging
					tt.stop(s, cancel)
				}()
			}
			r := s.Do(ctx, req)
			if r.Status != tt.status || !slices.Equal(r.Calls, want) || r.CallsLeftOut != 0 || r.ReadOnlyCalls < 1 || r.ReadOnlyCalls > reads {
				t.Errorf("got %s (%s), calls %+v, %d read-only, stderr %q\nwant %s, calls %+v", r.Status, r.Error, r.Calls, r.ReadOnlyCalls, r.Stderr, tt.status, want)
			}
		})
	}
}

func TestRunThatSucceedsListsNoCalls(t *testing.T) {
	r := runCode(t, newServer(t, effectTools(nil), nil), callAll, "up")
	if r.IsError() || r.Calls != nil || r.ReadOnlyCalls != 0 {
		t.Errorf("got %+v", r)
	}
}

func TestCallThatThePolicyForbidsIsNotListed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.toml")
	if err := os.WriteFile(file, []byte("[servers.up]\ncallsPerRun = 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, effectTools(nil), func(o *Options) { o.Policy = policy.Load(file, true, nil) })
	for range 2 { // each run has its own count
		r := runCode(t, s, "from mcp import runtime\nawait mcp_up.write()\ntry: await mcp_up.write()\nexcept runtime.MCPError as e: print(e)\n1/0", "up")
		if len(r.Calls) != 1 || !strings.Contains(strings.Join(r.Stdout, ""), "policy.toml, [servers.up] callsPerRun = 1: this run has called") {
			t.Errorf("calls %+v, output %q", r.Calls, r.Stdout)
		}
	}
}
