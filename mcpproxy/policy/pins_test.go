package policy

import (
	"errors"
	"strings"
	"testing"
)

func TestPinsDecideOnToolsThatHaveChanged(t *testing.T) {
	const text = `
[default]
pins = "ask"

[servers.bank]
pins = "refuse"

[servers.notes]
pins = "warn"

[servers.shop]
deny = "buy"
ask = "sell"
callsPerRun = 1
`
	p := Load(writePolicy(t, text), true, nil)
	call := func(server, tool, changed string) Call {
		return Call{Server: Server{Name: server}, Tool: toolOf(tool), Changed: changed}
	}
	for name, tt := range map[string]struct {
		call Call
		want string // of the error; reasons have " | " between them
	}{
		"unchanged":       {call("any", "get", ""), ""},
		"ask":             {call("any", "get", "it is new"), `policy FILE, [default] pins = "ask": it is new`},
		"not to refuse":   {call("bank", "get", ""), ""},
		"refuse":          {call("bank", "get", "it is new"), `policy FILE, [servers.bank] pins = "refuse": calling "get" of server "bank" is not allowed: it is new`},
		"warn":            {call("notes", "get", "it is new"), ""},
		"denied":          {call("shop", "buy", "it is new"), `policy FILE, [servers.shop] deny = "buy": calling "buy" of server "shop" is not allowed`},
		"asked for twice": {call("shop", "sell", "it is new"), `policy FILE, [default] pins = "ask": it is new | policy FILE, [servers.shop] ask = "sell"`},
	} {
		err := p.NewEnforcer().Authorize(t.Context(), tt.call)
		got := ""
		if ask, ok := errors.AsType[*Ask](err); ok {
			got = strings.Join(ask.Reasons, " | ")
		} else if err != nil {
			got = err.Error()
		}
		if got = strings.ReplaceAll(got, p.name(), "FILE"); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
	// What the user allowed is that change, and the call counts once.
	run := p.NewEnforcer()
	var allowed string
	c := call("shop", "sell", "it is v2")
	user := func(a *Ask) bool { return strings.Join(a.Reasons, "\n") == allowed }
	var ask *Ask
	if err := run.Authorize(t.Context(), c, user); !errors.As(err, &ask) {
		t.Fatal(err)
	}
	allowed = strings.Join(ask.Reasons, "\n")
	again := c
	again.Changed = "it is v3"
	if err := run.Authorize(t.Context(), again, user); !errors.As(err, &ask) {
		t.Errorf("another change: %v", err)
	}
	if err := run.Authorize(t.Context(), c, user); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if err := run.Authorize(t.Context(), c, user); err == nil || !strings.Contains(err.Error(), "callsPerRun") {
		t.Errorf("the second call: %v", err)
	}
	if None().NewEnforcer().Authorize(t.Context(), c, user) != nil {
		t.Error("without a policy, a change is a matter of notes")
	}
}
