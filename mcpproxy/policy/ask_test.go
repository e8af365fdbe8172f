package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func serverOf(name string) Server {
	return Server{Name: name, Alias: strings.ReplaceAll(strings.ToLower(name), "-", "_")}
}

// reasonsOf returns why a call is asked about, without the name of the file. Another error
// fails the test.
func reasonsOf(t *testing.T, err error) (reasons []string) {
	t.Helper()
	ask := askOf(err)
	if err != nil && ask == nil {
		t.Fatal(err)
	}
	if ask != nil {
		for _, r := range ask.Reasons {
			_, rule, ok := strings.Cut(r, "policy.toml, ")
			if !ok || strings.Contains(r, "\n") {
				t.Errorf("the reason %q names no rule", r)
			}
			reasons = append(reasons, rule)
		}
	}
	return reasons
}

// askOf returns the question in an error, or nil.
func askOf(err error) (ask *Ask) {
	errors.As(err, &ask)
	return ask
}

func TestPolicyAsks(t *testing.T) {
	p := parsePolicy(t, `
[default]
ask = "delete_*"
deny = "drop_*"

[servers.bank]
ask = ["transfer", "DELETE_all"]
allow = ["get_*", "transfer", "delete_*", "writes"]

[servers."ban?"]
ask = "trans*"

[servers.mail]
ask = "writes"

[servers.list]
ask = ["write?"]

[servers.closed]
ask = "*"
deny = "*"

[servers.all]
ask = ["x", "*"]

[servers.quiet]
ask = []
`)
	for _, tt := range []struct {
		server, tool string
		want         []string // reasons
	}{
		{"bank", "get_balance", nil},
		{"bank", "transfer", []string{`[servers.bank] ask = "transfer"`, `[servers."ban?"] ask = "trans*"`}},
		{"bank", "TRANSFER", []string{`[servers.bank] ask = "transfer"`, `[servers."ban?"] ask = "trans*"`}},
		{"bank", "delete-all", []string{`[servers.bank] ask = "DELETE_all"`, `[default] ask = "delete_*"`}}, // by its alias
		{"mail", "get_mail", nil},
		{"mail", "send", []string{`[servers.mail] ask = "writes"`}},
		{"mail", "delete_mail", []string{`[servers.mail] ask = "writes"`, `[default] ask = "delete_*"`}},
		{"list", "send", nil},
		{"list", "writes", []string{`[servers.list] ask = "write?"`}},
		{"all", "get_x", []string{`[servers.all] ask = "*"`}},
		{"quiet", "send", nil},
		{"quiet", "delete_x", []string{`[default] ask = "delete_*"`}}, // no section takes back what another asks
		{"other", "send", nil},
	} {
		run := p.NewEnforcer()
		err := run.Authorize(t.Context(), Call{Server: serverOf(tt.server), Tool: toolOf(tt.tool)})
		if got := reasonsOf(t, err); !slices.Equal(got, tt.want) {
			t.Errorf("%s.%s: %q, want %q", tt.server, tt.tool, got, tt.want)
		}
		err = run.Authorize(t.Context(), Call{Server: serverOf(tt.server), Tool: toolOf(tt.tool)}, func(a *Ask) bool {
			return a.Server == tt.server && a.Tool == tt.tool && !a.Once
		})
		if err != nil {
			t.Errorf("%s.%s, allowed by the user: %v", tt.server, tt.tool, err)
		}
	}
	yes := func(*Ask) bool { return true }
	for call, want := range map[[2]string]string{{"bank", "close"}: "allow", {"bank", "drop_x"}: `deny = "drop_*"`, {"closed", "get_x"}: `deny = "*"`} {
		err := p.NewEnforcer().Authorize(t.Context(), Call{Server: serverOf(call[0]), Tool: toolOf(call[1])}, yes)
		if wantErr(t, err, want); askOf(err) != nil {
			t.Errorf("%v is asked about: %v", call, err)
		}
	}
	for server, want := range map[string][]string{"all": {`[servers.all] ask = "*"`}, "mail": nil, "bank": nil} {
		if got := reasonsOf(t, p.NewEnforcer().AuthorizeServer(serverOf(server))); !slices.Equal(got, want) {
			t.Errorf("a resource of %s: %q, want %q", server, got, want)
		}
	}
}

// TestCallIsNotAllowedWhenItsContextHasEnded, and does not count: its arguments may not all
// have been read.
func TestCallIsNotAllowedWhenItsContextHasEnded(t *testing.T) {
	p := parsePolicy(t, "[servers.bank]\ncallsPerRun = 1\n[[servers.bank.tools.pay.when]]\npath = 'amount'\nop = '>'\nvalue = 100")
	run := p.NewEnforcer()
	pay := Call{Server: Server{Name: "bank"}, Tool: Tool{Name: "pay"}, Arguments: json.RawMessage(`{"amount":7}`)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run.Authorize(ctx, pay); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := run.Authorize(t.Context(), pay); err != nil {
		t.Errorf("the call that is still to be made: %v", err)
	}
}

func TestAskSaysWhatAndWhy(t *testing.T) {
	p := parsePolicy(t, "[servers.bank]\nask = 'pay'\n[[servers.bank.tools.'p*'.when]]\npath = 'amount'\nop = '>'\nvalue = 100\n[[default.tools.pay.when]]\npath = 'to'\nop = '!='\nvalue = 'me'")
	err := p.NewEnforcer().Authorize(t.Context(), Call{Server: Server{Name: "bank"}, Tool: Tool{Name: "pay"}, Arguments: json.RawMessage(`{"amount":7}`)})
	ask := askOf(err)
	if ask == nil || !ask.Once || ask.Server != "bank" || ask.Tool != "pay" || string(ask.Arguments) != `{"amount":7}` {
		t.Fatalf("%+v, %v", ask, err)
	}
	name := p.name()
	want := fmt.Sprintf(`calling "pay" of server "bank" needs the user's consent: policy %s, [servers.bank] ask = "pay"; policy %s, [[default.tools.pay.when]] to != "me", but there is no "to"`, name, name)
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	err = p.NewEnforcer().Authorize(t.Context(), Call{Server: Server{Name: "bank"}, Tool: Tool{Name: "pay"}})
	if got := reasonsOf(t, err); len(got) != 3 || got[1] != `[[servers.bank.tools."p*".when]] amount > 100, but there is no "amount"` {
		t.Errorf("without arguments: %q", got)
	}
	if err := p.NewEnforcer().Authorize(t.Context(), Call{Server: Server{Name: "bank"}, Tool: Tool{Name: "get"}, Arguments: json.RawMessage(`{"amount":700}`)}); err != nil {
		t.Errorf("the conditions of other tools: %v", err)
	}
}

// TestReasonsOfJustOneCallAreAskedAbout, whatever the rules say, and for this call only.
func TestReasonsOfJustOneCallAreAskedAbout(t *testing.T) {
	p := parsePolicy(t, "[servers.bank]\nask = 'pay'")
	rule := "policy " + p.name() + `, [servers.bank] ask = "pay"`
	for name, tt := range map[string]struct {
		policy  *Policy
		reasons []string // of the call
		want    []string
		once    bool
	}{
		"no policy":   {None(), []string{"it has private data"}, []string{"it has private data"}, true},
		"also a rule": {p, []string{"it has private data"}, []string{"it has private data", rule}, true},
		"a rule":      {p, nil, []string{rule}, false},
	} {
		err := tt.policy.NewEnforcer().Authorize(t.Context(), Call{Server: Server{Name: "bank"}, Tool: Tool{Name: "pay"}, Reasons: tt.reasons})
		if ask := askOf(err); ask == nil || !slices.Equal(ask.Reasons, tt.want) || ask.Once != tt.once {
			t.Errorf("%s: %+v, %v", name, ask, err)
		}
	}
}

// TestHintsThatMayBeAcceptedAreOffered where accepting them would have spared the question.
func TestHintsThatMayBeAcceptedAreOffered(t *testing.T) {
	p := parsePolicy(t, "[servers.mail]\nask = 'writes'\n[servers.all]\nask = '*'")
	for name, tt := range map[string]struct {
		server     string
		tool       Tool
		want, hint string
		unpinned   bool
	}{
		"accepted":           {"mail", Tool{ReadOnly: true, Digest: "d1"}, `[]`, "", false},
		"no hint":            {"mail", Tool{Digest: "d1"}, `["[servers.mail] ask = \"writes\""]`, "", false},
		"may be accepted":    {"mail", Tool{Unaccepted: "it is new", Acceptable: true, Digest: "d1"}, `["[servers.mail] ask = \"writes\": it is new"]`, "d1", true},
		"cannot be accepted": {"mail", Tool{Unaccepted: "it is new", Digest: "d1"}, `["[servers.mail] ask = \"writes\": it is new"]`, "", true},
		"asked about anyway": {"all", Tool{Unaccepted: "it is new", Acceptable: true, Digest: "d1"}, `["[servers.all] ask = \"*\""]`, "", false},
	} {
		tt.tool.Name = "x"
		err := p.NewEnforcer().Authorize(t.Context(), Call{Server: serverOf(tt.server), Tool: tt.tool})
		hint := ""
		if ask := askOf(err); ask != nil {
			hint = ask.Hint
			if ask.Unpinned != tt.unpinned {
				t.Errorf("%s: a reason is the definition: %t", name, ask.Unpinned)
			}
		}
		if got := fmt.Sprintf("%q", reasonsOf(t, err)); got != tt.want || hint != tt.hint {
			t.Errorf("%s: %s and the hint %q, want %s and %q", name, got, hint, tt.want, tt.hint)
		}
	}
}

func TestAsksAreTheSameAboutTheSameCall(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Ask)
		want   bool
	}{
		"nothing":   {func(*Ask) {}, true},
		"server":    {func(a *Ask) { a.Server = "shop" }, false},
		"tool":      {func(a *Ask) { a.Tool = "get" }, false},
		"once":      {func(a *Ask) { a.Once = true }, false},
		"unpinned":  {func(a *Ask) { a.Unpinned = true }, false},
		"identity":  {func(a *Ask) { a.Identity = "v2" }, false},
		"reasons":   {func(a *Ask) { a.Reasons = []string{"x"} }, false},
		"arguments": {func(a *Ask) { a.Arguments = json.RawMessage(`{"amount":70}`) }, false},
	} {
		ask := Ask{Server: "bank", Tool: "pay", Reasons: []string{"x", "y"}, Arguments: json.RawMessage(`{"amount":7}`), Identity: "v1"}
		other := ask
		other.Reasons, other.Arguments = slices.Clone(ask.Reasons), slices.Clone(ask.Arguments)
		tt.change(&other)
		if got := ask.Same(&other); got != tt.want || other.Same(&ask) != got {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestLimitsCountWhatGoesOut, and the user is not asked about what a limit refuses.
func TestLimitsCountWhatGoesOut(t *testing.T) {
	run := parsePolicy(t, "[servers.bank]\nask = 'pay'\ncallsPerRun = 2\ncallsPerMinute = 2").NewEnforcer()
	pay := Call{Server: Server{Name: "bank"}, Tool: Tool{Name: "pay"}}
	asked := 0
	for range 5 {
		if got := reasonsOf(t, run.Authorize(t.Context(), pay)); len(got) != 1 {
			t.Fatalf("asked %q", got)
		}
		if got := reasonsOf(t, run.Authorize(t.Context(), pay, func(*Ask) bool { asked++; return false })); len(got) != 1 {
			t.Fatalf("asked %q", got)
		}
	}
	for range 2 {
		if err := run.Authorize(t.Context(), pay, func(*Ask) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	err := run.Authorize(t.Context(), pay)
	wantErr(t, err, "callsPerRun = 2")
	if askOf(err) != nil || asked != 5 {
		t.Errorf("asked %d times, and then %v", asked, err)
	}
}

func TestWhenTheUserCannotBeAsked(t *testing.T) {
	p := parsePolicy(t, `
[default]
unaskedAllow = ["get_*", "note"]
[servers.open]
unasked = "allow"
[servers.shut]
unasked = "deny"
[servers.some]
unaskedAllow = "note-*"
[servers.none]
unaskedAllow = []
`)
	for call, want := range map[[2]string]bool{
		{"any", "get_x"}: true, {"any", "note"}: true, {"any", "send"}: false, {"open", "send"}: true, {"shut", "get_x"}: false, {"shut", "send"}: false,
		{"some", "note-x"}: true, {"some", "get_x"}: false, {"some", "send"}: false, {"none", "note"}: false, {"", ""}: false,
	} {
		if got := p.NewEnforcer().AllowedUnasked(serverOf(call[0]), toolOf(call[1])); got != want {
			t.Errorf("%v: %v", call, got)
		}
	}
	p = parsePolicy(t, "[default]\nunasked = 'allow'\n[servers.'*']\nunasked = 'deny'")
	for server, want := range map[string]bool{"": true, "any": false} {
		if got := p.NewEnforcer().AllowedUnasked(serverOf(server), toolOf("x")); got != want {
			t.Errorf("%q: %v", server, got)
		}
	}
	for name, p := range map[string]*Policy{"none": nil, "empty": parsePolicy(t, ""), "broken": Load(writePolicy(t, "x"), true, nil)} {
		if p.NewEnforcer().AllowedUnasked(serverOf("x"), toolOf("x")) {
			t.Errorf("%s policy: allowed", name)
		}
	}
}

func TestFlowAndPinsAreOfTheSectionThatSaysMost(t *testing.T) {
	run := parsePolicy(t, `
[default]
private = true
pins = "ask"
[servers."web*"]
private = false
open = true
[servers.web-mail]
private = true
pins = "refuse"
[servers.pinned]
pins = "warn"
`).NewEnforcer()
	for server, want := range map[string]string{
		"files": "true false ask", "web": "false true ask", "web-mail": "true true refuse", "WEB_MAIL": "true true refuse", "pinned": "true false warn",
	} {
		s := Server{Name: server, Alias: strings.ReplaceAll(strings.ToLower(server), "_", "-")}
		private, open := run.Flow(s)
		_, mode := run.rules.pins(s)
		if got := fmt.Sprintln(private, open, mode); got != want+"\n" {
			t.Errorf("%s: %s, want %s", server, got, want)
		}
	}
	none := None().NewEnforcer()
	if private, open := none.Flow(Server{}); private || open || none.GoesByDefinitions(Server{}) || none.Asks() {
		t.Error("without a policy something is guarded")
	}
}

func TestPoliciesThatCanAsk(t *testing.T) {
	for text, want := range map[string]bool{
		"":                            false,
		"[default]\ndeny = '*'":       false,
		"[default]\nask = []":         false,
		"[default]\nask = 'x'":        true,
		"[servers.a]\nask = 'writes'": true,
		"[servers.a]\nprivate = true": false,
		"[servers.a]\nprivate = true\nopen = false":                        false,
		"[servers.a]\nprivate = true\n[servers.b]\nopen = true":            true,
		"[servers.a]\npins = 'ask'":                                        true,
		"[servers.a]\npins = 'refuse'":                                     false,
		"[network]\nask = 'x.org'":                                         true,
		"[packages]\nask = 'any'":                                          true,
		"[packages]\nask = ['numpy']":                                      true,
		"[packages]\nask = []":                                             false,
		"[[default.tools.x.when]]\npath = 'a'\nop = '=='\nvalue = 1":       true,
		"[default.tools.x]\ncallsPerRun = 1\n[network]\nallow = ['x.org']": false,
	} {
		if got := parsePolicy(t, text).NewEnforcer().Asks(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestRulesThatGoByDefinitions(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                                           false,
		"[default]\ndeny = '*'\ncallsPerRun = 1":                     false,
		"[default]\nask = 'x'":                                       true,
		"[servers.a]\nask = 'writes'":                                true,
		"[servers.b]\nask = 'writes'":                                false,
		"[servers.a]\nreadOnly = true":                               true,
		"[servers.a]\nreadOnly = false":                              false,
		"[servers.a]\nprivate = true":                                true,
		"[servers.a]\nopen = true":                                   true,
		"[servers.a]\nprivate = false\nopen = false":                 false,
		"[servers.a]\npins = 'ask'":                                  true,
		"[servers.a]\npins = 'refuse'":                               true,
		"[servers.a]\npins = 'warn'":                                 false,
		"[servers.b]\npins = 'refuse'":                               false,
		"[[default.tools.x.when]]\npath = 'a'\nop = '=='\nvalue = 1": true,
	} {
		if got := parsePolicy(t, text).NewEnforcer().GoesByDefinitions(serverOf("a")); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestAskKeysThatAreWrongSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		"[default]\nask = true":           `1: [default] ask: it must be a string or a list of strings, not true`,
		"[default]\nask = ''":             `1: [default] ask: a glob is empty`,
		"[servers.a]\nask = ['[x]']":      `8: [servers.a] ask: the glob "[x]" is not understood`,
		"[servers.a]\nunasked = 'ask'":    `1: [servers.a] unasked: "ask" is none of "deny", "allow"`,
		"[servers.a]\nunasked = true":     `1: [servers.a] unasked: it must be a string, not true`,
		"[servers.a]\nunaskedAllow = 1":   `1: [servers.a] unaskedAllow: it must be a string or a list of strings, not a number`,
		"[servers.a]\nprivate = 'yes'":    `1: [servers.a] private: it must be true or false, not a string`,
		"[servers.a]\nopen = 1":           `1: [servers.a] open: it must be true or false, not a number`,
		"[servers.a]\npins = 'deny'":      `1: [servers.a] pins: "deny" is none of "warn", "ask", "refuse"`,
		"[network]\nask = ['x y z']":      `8: [network] ask: "x y z"`,
		"[network]\nask = true":           `1: [network] ask: it must be a string or a list of strings, not true`,
		"[packages]\nask = 'pandas'":      `1: [packages] ask: it must be "any", or a list of packages`,
		"[packages]\nask = ['a', 'A>=2']": `1: [packages] ask: "a" is there twice`,
		"[packages]\nask = ['a[b]']":      `8: [packages] ask: "a[b]"`,
	} {
		_, err := parseRules(text, "policy.toml")
		wantErr(t, err, "policy.toml:2:"+want)
	}
}
