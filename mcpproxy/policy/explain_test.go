package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestEveryReasonIsOfTheRuleThatGivesIt, and of no other.
func TestEveryReasonIsOfTheRuleThatGivesIt(t *testing.T) {
	p := Parse([]byte(`
[default]
deny = ["drop_*", "drop"]
[servers.bank]
allow = ["get_*", "pay", "drop*", "close"]
ask = ["pay", "pay*"]
[[servers.bank.tools.pay.when]]
path = "amount"
op = ">"
value = 1
[[servers.bank.tools.pay.when]]
path = "amount"
op = ">"
value = 10
[servers.shop]
ask = "writes"
readOnly = true
[servers.diary]
allow = []
`), "/etc/policy.toml")
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	e := p.NewEnforcer()
	for _, c := range []struct{ server, tool, arguments, want string }{
		{"bank", "drop_all", "{}", `[default] deny = "drop_*"`},
		{"bank", "drop", "{}", `[default] deny = "drop"`},
		{"bank", "move", "{}", `[servers.bank] allow = ["get_*", "pay", "drop*", "close"]`},
		{"bank", "pay", `{"amount":5}`, `[servers.bank] ask = "pay", [servers.bank.tools.pay.when] amount > 1`},
		{"bank", "pay", `{}`, `[servers.bank] ask = "pay", [servers.bank.tools.pay.when] amount > 1, [servers.bank.tools.pay.when] amount > 10`},
		{"bank", "close", "{}", ""},
		{"shop", "buy", "{}", "[servers.shop] readOnly = true"},
		{"diary", "read", "{}", "[servers.diary] allow = []"},
	} {
		ask, err := e.Check(t.Context(), Call{Server: Server{Name: c.server}, Tool: toolOf(c.tool), Arguments: json.RawMessage(c.arguments)})
		var reasons []string
		if denied, ok := errors.AsType[*DeniedError](err); ok {
			reasons = []string{denied.Error()}
		} else if ask != nil {
			reasons = ask.Reasons
		}
		var got []string
		for _, sec := range p.Sections() {
			for _, r := range sec.Rules {
				if slices.ContainsFunc(reasons, r.Gives) {
					got = append(got, "["+r.Section.String()+"] "+r.Text)
				}
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s.%s %s: %s, want %s", c.server, c.tool, c.arguments, got, c.want)
		}
	}
	bank := p.Sections()[slices.IndexFunc(p.Sections(), func(s Section) bool { return s.Name == "[servers.bank]" })]
	if by := e.AllowedBy(Server{Name: "bank"}, toolOf("close")); !bank.Rules[0].Gives(by) {
		t.Errorf("what is listed is allowed by %q, which is not %q", by, bank.Rules[0].Text)
	}
	if by := e.AllowedBy(Server{Name: "shop"}, toolOf("get")); by != "" {
		t.Errorf("without a list it is allowed by %q", by)
	}
	if !e.ByArguments(Server{Name: "bank"}, toolOf("pay")) || e.ByArguments(Server{Name: "bank"}, toolOf("close")) || e.ByArguments(Server{Name: "shop"}, toolOf("pay")) {
		t.Error("it is not known which tools have conditions")
	}
}

// TestEveryKeyIsExplained in words.
func TestEveryKeyIsExplained(t *testing.T) {
	p := Parse([]byte(`
[servers."b*"]
allow = "x"
deny = "*"
ask = "writes"
readOnly = false
callsPerRun = 1
callsPerMinute = 2
unasked = "allow"
unaskedAllow = "x"
private = true
open = false
pins = "ask"
record = "none"
tools.x.callsPerRun = 3
tools.x.when = [{ path = "a", op = "==", value = "b" }]
`), "/etc/policy.toml")
	all := p.Sections()
	if len(all) != 1 || all[0].Name != `[servers."b*"]` || all[0].About != `each server whose name matches "b*"` {
		t.Fatalf("%+v, %v", all, p.Err())
	}
	var keys []string
	for _, r := range all[0].Rules {
		keys = append(keys, r.Key)
		if r.Says == "" || r.Text == "" {
			t.Errorf("%+v says nothing", r)
		}
	}
	if got := fmt.Sprint(keys); got != "[deny allow readOnly callsPerRun callsPerMinute ask unasked unaskedAllow private open pins record callsPerRun when]" {
		t.Error(got)
	}
}

// TestATextIsAPolicy that no file changes, or that says where it is wrong.
func TestATextIsAPolicy(t *testing.T) {
	p := Parse([]byte("[servers.bank]\ndeny = 'pay'\n"), writePolicy(t, ""))
	if _, err := p.NewEnforcer().Check(t.Context(), Call{Server: Server{Name: "bank"}, Tool: toolOf("pay")}); err == nil || p.Err() != nil {
		t.Errorf("the text does not count: %v, %v", err, p.Err())
	}
	for source, want := range map[string]string{"[default]\nalow = 1": ":2:1: ", strings.Repeat("#", maxPolicySize+1): "more than"} {
		wrong := Parse([]byte(source), "/etc/policy.toml")
		if err := wrong.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v", source, err)
		}
		if _, err := wrong.NewEnforcer().Check(t.Context(), Call{Server: Server{Name: "bank"}, Tool: toolOf("pay")}); err == nil {
			t.Errorf("%.20q allows a call", source)
		}
	}
}
