package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// planning is the gate of a dry run, which may use a server that writes.
func planning(t *testing.T) *gate.Gate {
	up := bridgetest.Servers{"up": {"write": nil}}.Proxy(t, bridgetest.Options{})
	return gate.New(gate.Options{
		Upstreams: up, Granted: map[string]bool{"up": true}, Policy: policy.None().NewEnforcer(), Taint: &consent.Taint{}, Plan: true,
	})
}

const write = `{"server":"up","tool":"write","arguments":{}}`

// TestPlannedCallsDoNotWaitForWhatIsNotPlanned: not for a call that failed, nor for the
// documentation that is still being read.
func TestPlannedCallsDoNotWaitForWhatIsNotPlanned(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // else a call that waits would do so forever
	defer cancel()
	g := planning(t)
	if _, err := CarryOut(ctx, g, hostFunc(noCalls), 1, "call_tool", json.RawMessage(`{"server":5}`)); err == nil {
		t.Error("a call without a server was planned")
	}
	host := hostFunc(func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		answer, err := CarryOut(ctx, g, hostFunc(noCalls), 3, "call_tool", json.RawMessage(write))
		return answer.JSON, err
	})
	if answer, err := CarryOut(ctx, g, host, 2, "list_tools", nil); err != nil || string(answer.JSON) != "[1,null]" {
		t.Errorf("a call during another is planned as %s, %v", answer.JSON, err)
	}
}

// TestNothingIsReadForWhatComesFromAPlannedResult, once the host has been told of that.
func TestNothingIsReadForWhatComesFromAPlannedResult(t *testing.T) {
	host := hostFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, nil })
	for derived, want := range map[bool]int{false: 0, true: 1} {
		g := planning(t)
		told := json.RawMessage(fmt.Sprintf(`{"derived":%v}`, derived))
		_, err := CarryOut(t.Context(), g, host, 1, "display", told)
		_, readErr := CarryOut(t.Context(), g, host, 2, "read_resource", json.RawMessage(`{"server":"up","uri":"x://1"}`))
		if err := errors.Join(err, readErr); err != nil || len(g.Plan().Calls) != want {
			t.Errorf("derived %v: %d reads were planned, %v", derived, len(g.Plan().Calls), err)
		}
	}
}

// TestStoppedRunGetsNothing, of the host neither.
func TestStoppedRunGetsNothing(t *testing.T) {
	g := gate.New(gate.Options{})
	g.Stop(consent.ErrStopped)
	host := hostFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		t.Error("the host was asked")
		return nil, nil
	})
	_, err := CarryOut(t.Context(), g, host, 1, "list_tools", nil)
	if e, ok := errors.AsType[*CallError](err); !ok || !e.Stopped {
		t.Errorf("got %+v", err)
	}
}

// TestErrorOfARunThatIsStoppedMeanwhileNamesItsServer.
func TestErrorOfARunThatIsStoppedMeanwhileNamesItsServer(t *testing.T) {
	host := hostFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return nil, NewCallError(consent.ErrStopped, "up", "write")
	})
	_, err := CarryOut(t.Context(), anyGate, host, 1, "describe", nil)
	if e, ok := errors.AsType[*CallError](err); !ok || !e.Stopped || e.Server != "up" || e.Tool != "write" {
		t.Errorf("got %+v", err)
	}
}

// TestCodeThatHasEndedFirstWasStoppedToo: its calls end with it, and a task that lives on in the
// session is told so.
func TestCodeThatHasEndedFirstWasStoppedToo(t *testing.T) {
	for stopped, want := range map[bool]bool{false: false, true: true} {
		g := gate.New(gate.Options{})
		host := hostFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			if stopped {
				g.Stop(consent.ErrStopped)
			}
			return nil, NewCallError(context.Canceled, "up", "write")
		})
		_, err := CarryOut(t.Context(), g, host, 1, "describe", nil)
		if e, ok := errors.AsType[*CallError](err); !ok || e.Stopped != want || errors.Is(err, consent.ErrStopped) != want {
			t.Errorf("stopped %t: got %+v", stopped, err)
		}
	}
}

// TestServerThatIsStillSilentIsNoted, also if only its documentation was wanted.
func TestServerThatIsStillSilentIsNoted(t *testing.T) {
	g, silent := gate.New(gate.Options{}), &mcpproxy.SilentError{Server: "up"}
	host := hostFunc(func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return nil, fmt.Errorf("wrapped: %w", silent)
	})
	if _, err := CarryOut(t.Context(), g, host, 1, "list_tools", nil); !errors.Is(err, silent) || g.Silent() != silent {
		t.Errorf("noted is %v, the error %v", g.Silent(), err)
	}
}
