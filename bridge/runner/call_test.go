package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/bridgetest"
	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// TestEffectsPassTheGate, and all else goes to the host.
func TestEffectsPassTheGate(t *testing.T) {
	up := bridgetest.Servers{"Up Server": {"write": func(_ context.Context, args json.RawMessage) (string, error) { return string(args), nil }}}.Proxy(t, bridgetest.Options{})
	newGate := func(granted bool) *gate.Gate {
		return gate.New(gate.Options{Upstreams: up, Granted: map[string]bool{"Up Server": granted}, Policy: policy.None().NewEnforcer(), Taint: &consent.Taint{}})
	}
	var asked []Call
	host := hostFunc(func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		asked = append(asked, Call{Method: method, Raw: params})
		return params, nil
	})
	for method, c := range map[string]struct{ params, want string }{
		"call_tool":               {`{"server":"Up Server","tool":"write","arguments":{"n":1}}`, `{\"n\":1}`},
		"read_resource":           {`{"server":"Up Server","uri":"x://1"}`, `of x://1`},
		"get_prompt":              {`{"server":"Up Server","name":"p","arguments":{"n":"2"}}`, `pmap[n:2]`},
		"list_resources":          {`{"server":"Up Server"}`, `x://a`},
		"list_resource_templates": {`{"server":"Up Server"}`, `x://{id}`},
		"list_prompts":            {`{"server":"Up Server"}`, `"p"`},
	} {
		answer, err := CarryOut(t.Context(), newGate(true), host, 1, method, json.RawMessage(c.params))
		if err != nil || !strings.Contains(string(answer.JSON), c.want) || len(asked) > 0 {
			t.Errorf("%s: %s, %v; the host was asked %v", method, answer.JSON, err, asked)
		}
		_, err = CarryOut(t.Context(), newGate(false), host, 1, method, json.RawMessage(c.params))
		e, ok := errors.AsType[*CallError](err)
		if !ok || e.Server != "Up Server" || (e.Tool == "write") != (method == "call_tool") || !strings.Contains(e.Message, "is not granted to this run") {
			t.Errorf("%s without a grant: %+v", method, err)
		}
		g := newGate(true)
		g.Stop(consent.ErrStopped)
		_, err = CarryOut(t.Context(), g, host, 1, method, json.RawMessage(c.params))
		if e, ok := errors.AsType[*CallError](err); !ok || !e.Stopped {
			t.Errorf("%s of a run that was stopped: %+v", method, err)
		}
	}
	if answer, err := CarryOut(t.Context(), newGate(false), host, 1, "list_tools", json.RawMessage(`{"server":"x","derived":true}`)); err != nil || len(asked) != 1 || asked[0].Method != "list_tools" {
		t.Errorf("%s, %v; the host was asked %v", answer.JSON, err, asked)
	}
}

// TestErrorsOfCallsSayWhatIsWrong in words of Python.
func TestErrorsOfCallsSayWhatIsWrong(t *testing.T) {
	up := bridgetest.Servers{"up": {"write": nil}}.Proxy(t, bridgetest.Options{Schemas: map[string]string{"write": `{"type":"object","properties":{"n":{"type":"integer"}}}`}})
	g := gate.New(gate.Options{Upstreams: up, Granted: map[string]bool{"up": true}, Policy: policy.None().NewEnforcer(), Taint: &consent.Taint{}})
	for params, want := range map[string]CallError{
		`{"server":5}`: {Kind: "TypeError", Message: "call_tool(): server must be a str, not int"},
		`{"server":"up","tool":"write","named":{"n":"x"}}`:             {Kind: "TypeError", Server: "up", Tool: "write", Message: "write(): n must be an integer, not str"},
		`{"server":"up","tool":"write","arguments":{},"derived":true}`: {Server: "up", Tool: "write", Message: "a variable of the code stands for the result of a call that was only planned"},
	} {
		_, err := CarryOut(t.Context(), g, hostFunc(noCalls), 1, "call_tool", json.RawMessage(params))
		e, ok := errors.AsType[*CallError](err)
		if !ok || e.Kind != want.Kind || e.Server != want.Server || e.Tool != want.Tool || !strings.HasPrefix(e.Message, want.Message) {
			t.Errorf("%s: %+v, want %+v", params, e, want)
		}
	}
	if _, err := CarryOut(t.Context(), g, hostFunc(noCalls), 1, "call_tool", json.RawMessage(`[]`)); err == nil || !strings.Contains(err.Error(), "reading the parameters of call_tool: they are not a JSON object") {
		t.Errorf("a list: %v", err)
	}
}
