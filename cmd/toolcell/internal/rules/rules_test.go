package rules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// named knows servers and tools by their names alone.
func named(server, tool string) (policy.Server, policy.Tool) {
	return policy.Server{Name: server, Alias: server}, policy.Tool{Name: tool, Alias: tool}
}

// fileOf is a policy with this text, or none.
func fileOf(t *testing.T, text string) File {
	t.Helper()
	f := File{Path: "/home/me/policy.toml", Policy: policy.None(), Named: named}
	if text != "" {
		f.There, f.Text, f.Policy = true, []byte(text), policy.Parse([]byte(text), f.Path)
	}
	return f
}

// A recorded call is written to a record, each in a run of its own.
type recorded struct {
	server, tool, arguments string
	decision                string // "" went out without a verdict
	writes                  bool
	keep                    record.Keep
}

// write writes runs run0000000, run0000001 and so on, of one call each.
func write(t *testing.T, calls ...recorded) *history.Record {
	t.Helper()
	dir := t.TempDir()
	j := record.Open(record.Options{Dir: dir, Host: "vm", Keep: record.KeepAll, MaxValue: 200})
	defer func() { _ = j.Close() }()
	for i, c := range calls {
		run := j.Begin(fmt.Sprintf("run%07d", i), "")
		err := run.Append(record.RunStart{Command: "serve", Grants: record.Grants{Servers: []string{c.server}}})
		if c.decision != "" {
			err = errors.Join(err, run.Append(record.Verdict{Call: 1, Effect: "tools/call", Server: c.server, Tool: c.tool, Decision: c.decision, Writes: c.writes, Arguments: record.TextOf(c.arguments), Keep: c.keep}))
		}
		if c.decision == "" || c.decision == "ask" {
			err = errors.Join(err, run.Append(record.CallStart{Call: 1, Effect: "tools/call", Server: c.server, Tool: c.tool, Writes: c.writes, Arguments: record.TextOf(c.arguments), Keep: c.keep}))
		}
		if err := errors.Join(err, run.Append(record.RunEnd{Status: "success"})); err != nil {
			t.Fatal(err)
		}
	}
	return history.Open(dir)
}

const bankPolicy = `# mine
[default]
deny = "drop*"

[servers.bank]
ask = "writes"

[[servers.bank.tools.peek.when]]
path = "account"
op = "=="
value = "private"

[servers.notes]
allow = ["read", "list*"]
ask = ["list", "re?d2"]
`

// TestCallsAreJudged by the policy as it is now, whatever it was then.
func TestCallsAreJudged(t *testing.T) {
	all := []struct {
		recorded
		want Decision
		rule string
	}{
		{recorded{server: "bank", tool: "pay", arguments: "{}", writes: true}, Asked, `[servers.bank] ask = "writes"`},
		{recorded{server: "bank", tool: "pay", arguments: "{}", writes: true, decision: "deny"}, Asked, `[servers.bank] ask = "writes"`},
		{recorded{server: "bank", tool: "peek", arguments: `{"account":"private"}`}, Asked, `[servers.bank] account == "private"`},
		{recorded{server: "bank", tool: "peek", arguments: `{"account":"mine"}`}, Allowed, ""},
		{recorded{server: "bank", tool: "peek", arguments: `{"account":"mine"}`, keep: record.KeepNone}, Unknown, ""},
		{recorded{server: "bank", tool: "peek", arguments: `{"account":"` + strings.Repeat("x", 9000) + `"}`}, Unknown, ""},
		{recorded{server: "bank", tool: "peek", arguments: `{"account":"x"}`, keep: record.KeepNone, writes: true}, Asked, `[servers.bank] ask = "writes"`},
		{recorded{server: "bank", tool: "peek", arguments: `no JSON`}, Unknown, ""},
		{recorded{server: "bank", tool: "drop_all", arguments: "{}", writes: true, decision: "ask"}, Denied, `[default] deny = "drop*"`},
		{recorded{server: "notes", tool: "read", arguments: "{}"}, Allowed, `[servers.notes] allow = ["read", "list*"]`},
		{recorded{server: "notes", tool: "list", arguments: "{}"}, Asked, `[servers.notes] ask = "list"`},
		{recorded{server: "notes", tool: "write", arguments: "{}", writes: true}, Denied, `[servers.notes] allow = ["read", "list*"]`},
		{recorded{server: "other", tool: "write", arguments: "{}", writes: true}, Allowed, ""},
		{recorded{server: "other", tool: strings.Repeat("x", 300), arguments: "{}"}, Unknown, ""},
	}
	f := fileOf(t, bankPolicy)
	for _, c := range all {
		t.Run(c.server+" "+c.tool[:3]+" "+c.arguments[:min(20, len(c.arguments))], func(t *testing.T) {
			tally, err := f.Count(t.Context(), write(t, c.recorded), timeline.Options{})
			if err != nil || len(tally.Kinds) != 1 {
				t.Fatalf("%+v, %v", tally, err)
			}
			k := tally.Kinds[0]
			rule := ""
			for _, sec := range tally.Sections {
				for _, r := range sec.Rules {
					if n := r.Allowed + r.Asked + r.Denied; n > 0 {
						rule += "[" + strings.TrimSuffix(r.Section[:min(2, len(r.Section))].String(), ".") + "] " + r.Text
						if n != 1 || r.Allowed > 0 != (c.want == Allowed) || r.Denied > 0 != (c.want == Denied) {
							t.Errorf("%q counts %+v", r.Text, r.Count)
						}
					}
				}
			}
			if k.Now != c.want || rule != c.rule || tally.Unknown > 0 != (c.want == Unknown) || tally.Free > 0 != (c.want == Allowed && rule == "") {
				t.Errorf("it is %s by %q, want %s by %q", k.Now, rule, c.want, c.rule)
			}
			was := map[string]Decision{"": Allowed, "ask": Asked, "deny": Denied}[c.decision]
			if k.Changed != (c.want != Unknown && was != c.want) {
				t.Errorf("changed: %v, from %s to %s", k.Changed, was, c.want)
			}
		})
	}
}

// TestHiddenArgumentsAreNotLookedAt, and a plan is no call.
func TestHiddenArgumentsAreNotLookedAt(t *testing.T) {
	from := write(t, recorded{server: "bank", tool: "peek", arguments: `{"account":"private"}`}, recorded{server: "bank", tool: "peek", arguments: `{}`, decision: "plan"})
	f := fileOf(t, bankPolicy)
	for name, c := range map[string]struct {
		shown timeline.Options
		want  Decision
	}{
		"shown":   {timeline.Options{}, Asked},
		"other":   {timeline.Options{Hide: func(s string) bool { return s == "mail" }}, Asked},
		"private": {timeline.Options{Hide: func(s string) bool { return s == "bank" }}, Unknown},
		"all":     {timeline.Options{HideAll: true}, Unknown},
	} {
		tally, err := f.Count(t.Context(), from, c.shown)
		if err != nil || tally.Runs != 2 || len(tally.Calls) != 1 || tally.Kinds[0].Now != c.want {
			t.Errorf("%s: %+v, %v", name, tally.Kinds, err)
		}
		o, err := fileOf(t, "").ForCall(t.Context(), from, c.shown, "run0000000", 1)
		if err != nil {
			t.Fatal(err)
		}
		if with := strings.Contains(fmt.Sprint(o), "private"); with != (c.want == Asked) || o.Hidden == with {
			t.Errorf("%s: the offers are %+v", name, o.All)
		}
	}
}

// TestARunWhoseStartIsLostIsHidden, since it is not known which servers it could use.
func TestARunWhoseStartIsLostIsHidden(t *testing.T) {
	dir := t.TempDir()
	j := record.Open(record.Options{Dir: dir, Host: "vm", Keep: record.KeepAll})
	run := j.Begin("lost000000", "")
	for _, e := range []record.Entry{
		record.CallStart{Call: 1, Effect: "tools/call", Server: "bank", Tool: "peek", Arguments: record.TextOf(`{"account":"private"}`)},
		record.RunEnd{Status: "success"},
	} {
		if err := run.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for hidden, want := range map[bool]Decision{false: Asked, true: Unknown} {
		shown := timeline.Options{}
		if hidden {
			shown.Hide = func(server string) bool { return server == "mail" }
		}
		tally, err := fileOf(t, bankPolicy).Count(t.Context(), history.Open(dir), shown)
		if err != nil || len(tally.Kinds) != 1 || tally.Kinds[0].Now != want {
			t.Errorf("%v: %+v, %v", hidden, tally.Kinds, err)
		}
		if o, err := fileOf(t, bankPolicy).ForCall(t.Context(), history.Open(dir), shown, "lost000000", 1); err != nil || o.Hidden != hidden {
			t.Errorf("%v: the offers are %+v, %v", hidden, o, err)
		}
	}
}

// TestBoundsAreSaid when they were hit.
func TestBoundsAreSaid(t *testing.T) {
	read, judge := readTime, judgeTime
	readTime, judgeTime = time.Hour, time.Hour
	t.Cleanup(func() { readTime, judgeTime = read, judge })
	dir := t.TempDir()
	j := record.Open(record.Options{Dir: dir, Host: "vm"})
	run := j.Begin("many000000", "")
	for n := range maxCalls + 2 {
		if err := run.Append(record.CallStart{Call: n + 1, Effect: "tools/call", Server: "bank", Tool: fmt.Sprintf("tool%d", n%(maxKinds+1)), Writes: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	tally, err := fileOf(t, bankPolicy).Count(t.Context(), history.Open(dir), timeline.Options{})
	if err != nil || len(tally.Calls) != maxCalls || fmt.Sprint(tally.Bounds) != "[20000 calls]" || len(tally.Kinds) != maxKinds || tally.More == 0 {
		t.Errorf("%d calls, %d kinds and %d more, %v, %v", len(tally.Calls), len(tally.Kinds), tally.More, tally.Bounds, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if tally, err = fileOf(t, bankPolicy).Count(ended, history.Open(dir), timeline.Options{}); err != nil || fmt.Sprint(tally.Bounds) != "[4 s of reading]" {
		t.Errorf("out of time: %v, %v", tally.Bounds, err)
	}
}

// titles are those of offers.
func titles(o *Offers) (all []string) {
	for _, offer := range o.All {
		all = append(all, offer.Title)
	}
	return all
}

// TestRulesAreOffered that decide the call, with what they would change.
func TestRulesAreOffered(t *testing.T) {
	from := write(t,
		recorded{server: "bank", tool: "pay", arguments: `{"amount":250,"to":{"iban":"DE1"},"now":true,"list":[1],"*":1}`, writes: true},
		recorded{server: "bank", tool: "pay", arguments: `{"amount":100,"to":{"iban":"DE2"},"now":false}`, writes: true},
		recorded{server: "bank", tool: "pay", arguments: `{"amount":900}`, writes: true, keep: record.KeepNone},
		recorded{server: "shop", tool: "pay", arguments: `{"amount":900}`, writes: true},
	)
	when := []string{"Ask about bank.pay if amount >= 250", `Ask about bank.pay if to.iban == "DE1"`, "Ask about bank.pay if now == true"}
	plain := slices.Concat([]string{"Ask about bank.pay", "Deny bank.pay"}, when)
	for name, c := range map[string]struct {
		text string
		want []string
		none string
	}{
		"no file":          {"", plain, ""},
		"nothing about it": {"[default]\ndeny = 'x'\n", plain, ""},
		"an alias":         {"[servers.BANK]\nopen = true\n", plain, ""},
		"no line feed":     {"[servers.bank]\nopen = true", plain, ""},
		"asked by name":    {"[servers.bank]\nask = ['x', 'pay'] # why\n", []string{"Allow bank.pay", "Deny bank.pay"}, ""},
		"asked twice":      {"[servers.bank]\nask = ['pay', 'p*']\n", []string{"Deny bank.pay"}, "asked all the same"},
		"asked elsewhere":  {"[default]\nask = 'pay'\n", []string{"Deny bank.pay"}, `[default] ask = "pay"`},
		"asked as a write": {"[servers.bank]\nask = 'writes'\n", []string{"Deny bank.pay"}, `ask = "writes"`},
		"denied":           {"[servers.bank]\nallow = []\n", nil, "denied already"},
		"an inline table":  {"servers.bank = { open = true }\n", nil, "by hand"},
	} {
		f := fileOf(t, c.text)
		o, err := f.ForCall(t.Context(), from, timeline.Options{}, "run0000000", 1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(titles(o), c.want) || !strings.Contains(strings.Join(o.None, "\n"), c.none) {
			t.Errorf("%s: %q, and not since %q; want %q", name, titles(o), o.None, c.want)
		}
		for _, offer := range o.All {
			differs, unknown := 3, 0
			if slices.Contains(when, offer.Title) {
				differs, unknown = 1, 1
			}
			if offer.Differs != differs || len(offer.Examples) != differs || offer.Unknown != unknown {
				t.Errorf("%s: %s: %d differ, %d are not known", name, offer.Title, offer.Differs, offer.Unknown)
			}
			if adds := !strings.Contains(offer.Diff, "\n-ask ="); strings.Contains(offer.Lines, "open = true") || (offer.Lines != "") != adds || offer.Command == "" || !strings.Contains(offer.Diff, "+"+strings.SplitN(offer.Lines, "\n", 2)[0]) {
				t.Errorf("%s: %s: %q in %q", name, offer.Title, offer.Lines, offer.Diff)
			}
		}
	}
}

// TestTheCommandMakesTheChange, in a file with line ends of any kind, with patch itself. Lines are to copy only
// if that makes the same change.
func TestTheCommandMakesTheChange(t *testing.T) {
	if _, err := exec.LookPath("patch"); err != nil {
		t.Skip("needs patch: apt-get install patch")
	}
	from := write(t, recorded{server: "bank", tool: "pay", arguments: `{"amount":250}`, writes: true})
	for name, c := range map[string]struct {
		text  string
		lines bool // for all offers
	}{
		"no file":                     {"", true},
		"nothing about it":            {"# it's mine\n[default]\ndeny = 'x'\n", true},
		"no line feed":                {"[servers.bank]\nopen = true", true},
		"Windows":                     {"# mine\r\n[servers.bank]\r\nopen = true\r\n\r\n[default]\r\ndeny = 'x'\r\n", true},
		"Windows without a line feed": {"# mine\r\n[servers.bank]\r\nopen = true", true},
		"both":                        {"# mine\n[servers.bank]\r\nopen = true\n[default]\r\n", true},
		"asked, in Windows":           {"[servers.bank]\r\nask = ['pay']\r\n", false},
		"asked in a line":             {"[servers.bank]\nask = [\n  'x',\n  'pay',\n]\n", false},
	} {
		f := fileOf(t, c.text)
		f.Path = filepath.Join(t.TempDir(), "my policy.toml")
		o, err := f.ForCall(t.Context(), from, timeline.Options{}, "run0000000", 1)
		if err != nil || len(o.All) < 2 {
			t.Fatalf("%s: %+v, %v", name, o, err)
		}
		if removes := o.All[0].Lines == ""; removes == c.lines {
			t.Errorf("%s: the lines to copy are %q for %s", name, o.All[0].Lines, o.All[0].Diff)
		}
		for _, offer := range o.All {
			_ = os.Remove(f.Path)
			if f.There {
				if err := os.WriteFile(f.Path, f.Text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			said, err := exec.CommandContext(t.Context(), "sh", "-c", offer.Command).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %s: %v %s", name, offer.Command, err, said)
			}
			got, err := os.ReadFile(f.Path)
			if err != nil || !bytes.Equal(got, offer.text) {
				t.Errorf("%s: %s: it gives %q, want %q, %v", name, offer.Title, got, offer.text, err)
			}
		}
	}
	for _, text := range []string{"# \u202e\n", "\topen = true # [servers.bank]\n", "# \u240d\r\n"} {
		f := fileOf(t, "[servers.bank]\n"+text)
		if o, err := f.ForCall(t.Context(), from, timeline.Options{}, "run0000000", 1); err != nil || len(o.All) == 0 || o.All[0].Command != "" {
			t.Errorf("%q: a command for what is not shown as it is: %+v, %v", text, o, err)
		}
	}
}

// TestHostileCallsGetNoOtherRule: what is offered is about the tool of that name and no other.
func TestHostileCallsGetNoOtherRule(t *testing.T) {
	for tool, offered := range map[string]bool{"a\"\ndeny = ": true, `a"]` + "\ndeny = []": false, "a*": false, "?": false, `a\b`: false, "a.b": true, "writes": true, "日本": true, "a\u202eb": true} {
		from := write(t, recorded{server: "ser\"ver", tool: tool, arguments: `{"a\"]\ndeny = []":"x\"\ny"}`})
		o, err := fileOf(t, "").ForCall(t.Context(), from, timeline.Options{}, "run0000000", 1)
		if err != nil || len(o.All) > 0 != offered || !offered && len(o.None) == 0 {
			t.Errorf("%q: %+v, %v", tool, o, err)
			continue
		}
		for _, offer := range o.All {
			p := policy.Parse([]byte(offer.Lines), "/x")
			if p.Err() != nil || len(p.Sections()) != 1 || p.Sections()[0].About != `the server "ser\"ver"` || len(p.Sections()[0].Rules) != 1 {
				t.Errorf("%q: %s: %+v", tool, offer.Title, p.Sections())
			}
		}
	}
}

// TestNothingIsOfferedForAFileWithAnError, nor for what is no call of a tool.
func TestNothingIsOfferedForAFileWithAnError(t *testing.T) {
	from := write(t, recorded{server: "bank", tool: "pay", arguments: "{}"})
	wrong := fileOf(t, "[servers.bank]\nalow = 1\n")
	if _, err := wrong.ForCall(t.Context(), from, timeline.Options{}, "run0000000", 1); err == nil || !strings.Contains(err.Error(), ":2:1:") {
		t.Errorf("offers: %v", err)
	}
	if tally, err := wrong.Count(t.Context(), from, timeline.Options{}); err != nil || len(tally.Kinds) > 0 {
		t.Errorf("it counts %+v, %v", tally, err)
	}
	if _, err := fileOf(t, "").ForCall(t.Context(), from, timeline.Options{}, "run0000000", 2); !errors.Is(err, ErrNoCall) {
		t.Errorf("of a call that is not there: %v", err)
	}
	if _, err := fileOf(t, "").ForCall(t.Context(), from, timeline.Options{}, "other", 1); !errors.Is(err, history.ErrNoRun) {
		t.Errorf("of a run that is not there: %v", err)
	}
}
