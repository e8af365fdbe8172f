package policy

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/internal/seeds"
)

func TestPolicyFileThatIsWrongSaysWhere(t *testing.T) {
	long := strings.Repeat("x", 600)
	for name, tt := range map[string]struct{ text, want string }{
		"syntax":                {"[servers.a]\nallow = [\"x\"\ndeny = 1\n", "policy.toml:3:"},
		"no value":              {"[default]\nallow =\n", "policy.toml:2:8: expected a value, but the line ends"},
		"twice":                 {"[default]\nreadOnly = true\nreadOnly = true", "policy.toml:3:"},
		"twins":                 {"[default]\ndeny = 'a'\nDeny = 'b'", `policy.toml:3:1: [default] Deny: there is no such key`},
		"unknown at the top":    {"\nserver = 1", `policy.toml:2:1: server: there is no such key; the keys are approvals, default, network, packages, servers`},
		"approvals of no kind":  {"approvals = 'lax'", `policy.toml:1:1: approvals: `},
		"unknown table":         {"[default]\n[server.github]\ndeny = '*'", `policy.toml:2:2: server: there is no such key`},
		"unknown in a section":  {"[servers.github]\n  alow = ['x']", `policy.toml:2:3: [servers.github] alow: there is no such key; the keys are allow, deny, ask, readOnly,`},
		"unknown, inline":       {"servers = {a = {deny = 'x', deni = 'y'}}", `policy.toml:1:29: [servers.a] deni: there is no such key`},
		"unknown, dotted":       {"[servers]\na.deny = 'x'\na.readonly = true", `policy.toml:3:3: [servers.a] readonly: there is no such key`},
		"unknown, quoted":       {"[servers.\"a b c\"]\n\"de ny\" = 'x'", `policy.toml:2:1: [servers."a b c"] "de ny": there is no such key`},
		"unknown for a tool":    {"[servers.a.tools.x]\ndeny = '*'", `policy.toml:2:1: [servers.a.tools.x] deny: there is no such key; the keys are callsPerRun, callsPerMinute, when`},
		"implied table":         {"[servers.a]\n[servers.a.tols.x]\ncallsPerRun = 1", `policy.toml:2:12: [servers.a] tols: there is no such key`},
		"section of wrong type": {"[servers]\ngithub = 'deny'", `policy.toml:2:1: [servers] github: it must be a table, not a string`},
		"default of wrong type": {"default = true", `policy.toml:1:1: default: it must be a table, not true`},
		"tables":                {"[[servers]]\na = 1", `policy.toml:1:3: servers: it must be a table, not a list`},
		"number for a glob":     {"[default]\nallow = 7", `policy.toml:2:1: [default] allow: it must be a string or a list of strings, not a number`},
		"number in globs":       {"[default]\nallow = ['a', 7]", `policy.toml:2:15: [default] allow: it must be a string, not a number`},
		"string for a switch":   {"[default]\nreadOnly = 'yes'", `policy.toml:2:1: [default] readOnly: it must be true or false, not a string`},
		"string for a limit":    {"[default]\ncallsPerRun = '5'", `policy.toml:2:1: [default] callsPerRun: it must be a whole number, not a string`},
		"broken limit":          {"[default]\ncallsPerRun = 1.5", `policy.toml:2:1: [default] callsPerRun: it must be a whole number, not a number with a decimal point`},
		"writes in a list":      {"[servers.bank]\nask = ['delete_*', 'writes']", `policy.toml:2:1: [servers.bank] ask: "writes" would be a tool of that name; to be asked about every tool that writes: ask = "writes"; about a tool of that name: ask = "write?"`},
		"Writes":                {"[default]\nask = 'Writes'", `policy.toml:2:1: [default] ask: "Writes" would be a tool of that name; to be asked about every tool that writes: ask = "writes"`},
		"limit of 0":            {"[default]\ncallsPerMinute = 0", `policy.toml:2:1: [default] callsPerMinute: 0 is not between 1 and 1000000; to forbid all calls write deny = "*"`},
		"limit below 0":         {"[default.tools.x]\ncallsPerRun = -1", `policy.toml:2:1: [default.tools.x] callsPerRun: -1 is not`},
		"limit too large":       {"[default]\ncallsPerRun = 99999999", `policy.toml:2:1: [default] callsPerRun: 99999999 is not`},
		"empty glob":            {"[default]\ndeny = ['a', '']", `policy.toml:2:14: [default] deny: a glob is empty`},
		"brackets":              {"[default]\ndeny = '[a-z]*'", `policy.toml:2:1: [default] deny: the glob "[a-z]*" is not understood: only * (any text) and ? (one character)`},
		"braces":                {"[default]\ndeny = '{a,b}'", `policy.toml:2:1: [default] deny: the glob "{a,b}" is not understood`},
		"server glob":           {"[servers.'a[bc']\nreadOnly = true", `policy.toml:1:10: [servers] "a[bc": the glob "a[bc" is not understood`},
		"empty server name":     {"[servers.'']\nreadOnly = true", `policy.toml:1:10: [servers] "": a glob is empty`},
		"name with a comma":     {"[servers.'a,b']\nreadOnly = 1", `policy.toml:2:1: [servers."a,b"] readOnly: it must be true or false, not a number`},
		"long glob":             {"[default]\ndeny = '" + long + "'", `policy.toml:2:1: [default] deny: the glob`},
		"too large":             {"#" + strings.Repeat(long, 2000), "policy.toml: is larger than 1 MiB"},
		"not text":              {"# \xff", "policy.toml:1:3: invalid UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Load(writePolicy(t, tt.text), true, nil)
			err := p.Err()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v\nwant  %s", err, tt.want)
			}
			if err := p.NewEnforcer().Authorize(t.Context(), Call{Server: Server{Name: "any"}, Tool: toolOf("get")}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("a call gets %v", err)
			}
		})
	}
}

// TestEveryKeySaysWhereItIsWrong gives each key of each section a date, which none takes.
func TestEveryKeySaysWhereItIsWrong(t *testing.T) {
	keys := 0
	for header, about := range map[string]string{
		"": "", "[default]": "[default] ", "[servers.a]": "[servers.a] ", "[servers.a.tools.b]": "[servers.a.tools.b] ",
		"[[default.tools.a.when]]": "[default.tools.a.when] ", "[network]": "[network] ", "[[network.credential]]": "[network.credential] ",
		"[packages]": "[packages] ", "[packages.credential]": "[packages.credential] ",
		"[packages.npm]": "[packages.npm] ", "[packages.npm.credential]": "[packages.npm.credential] ",
	} {
		_, err := parseRules(header+"\nno-such = 1", "policy.toml")
		wantErr(t, err, "policy.toml:2:1: "+about+"no-such: there is no such key; the keys are ")
		_, all, _ := strings.Cut(err.Error(), "the keys are ")
		for key := range strings.SplitSeq(all, ", ") {
			rest := map[string]string{"value": "path = 'a'\nop = '=='"}[key]
			if strings.HasPrefix(about, "[network") {
				rest = ""
			}
			_, err := parseRules(header+"\n"+key+" = 2026-01-31\n"+rest, "policy.toml")
			wantErr(t, err, "policy.toml:2:1: "+about+key+": ")
			keys++
		}
	}
	if keys < 50 {
		t.Errorf("only %d keys", keys)
	}
}

func TestPolicyFileThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{dir: ": is a directory", pipe: "pipe: is not a regular file", "/dev/null/policy.toml": "not a directory"} {
		wantErr(t, Load(file, true, nil).Err(), want)
	}
}

// TestWhatSaysMoreAboutAToolDecides, and of two alike the later one.
func TestWhatSaysMoreAboutAToolDecides(t *testing.T) {
	const narrow, wide = "[default.tools.'get_*']\ncallsPerRun = 1\n", "[default.tools.'g*']\ncallsPerRun = 2\n"
	for text, want := range map[string]string{
		narrow + wide: `[default.tools."get_*"] callsPerRun = 1`,
		wide + narrow: `[default.tools."get_*"] callsPerRun = 1`,
		narrow + "[default.tools.'*get_']\ncallsPerRun = 3": `[default.tools."*get_"] callsPerRun = 3`,
	} {
		run := parsePolicy(t, text).NewEnforcer()
		var err error
		for i := 0; err == nil && i < 10; i++ {
			err = run.Authorize(t.Context(), Call{Server: Server{Name: "s"}, Tool: toolOf("get_get_")})
		}
		wantErr(t, err, want)
	}
}

func TestApprovalsMayBeStrict(t *testing.T) {
	for text, want := range map[string]bool{"": false, "approvals = 'tell'": false, "approvals = 'strict'": true, "approvals = 1": true} {
		if got := Load(writePolicy(t, text), true, nil).StrictApprovals(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestPolicyThatIsALinkToNothingAllowsNothing: there is a policy, only not here now.
func TestPolicyThatIsALinkToNothingAllowsNothing(t *testing.T) {
	dir := t.TempDir()
	for link, to := range map[string]string{"policy.toml": "dotfiles/policy.toml", "folder": "dotfiles", "circle": "circle"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"policy.toml", "folder/policy.toml", "folder/x/policy.toml"} {
		p := Load(filepath.Join(dir, file), false, nil)
		wantErr(t, p.Err(), "is a link to nothing")
		wantErr(t, p.NewEnforcer().AuthorizeServer(Server{Name: "s"}), "nothing may be called")
	}
	wantErr(t, Load(filepath.Join(dir, "circle"), false, nil).Err(), "too many levels of symbolic links")
	if err := Load(filepath.Join(dir, "none", "policy.toml"), false, nil).Err(); err != nil {
		t.Errorf("without a policy: %v", err)
	}
	p := Load(filepath.Join(dir, "policy.toml"), false, nil)
	if err := os.Mkdir(filepath.Join(dir, "dotfiles"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dotfiles", "policy.toml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.NewEnforcer().AuthorizeServer(Server{Name: "s"}); err != nil {
		t.Errorf("when it is there: %v", err)
	}
}

// TestPolicyExamplesOfTheDocuments reads every example in docs/policy.md, and
// the errors that it shows are those that there are.
func TestPolicyExamplesOfTheDocuments(t *testing.T) {
	doc, err := os.ReadFile("../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(doc), "```toml\n")[1:]
	if len(blocks) < 3 {
		t.Errorf("%d examples, want at least 3", len(blocks))
	}
	const name = "~/.config/toolcell/policy.toml"
	all := make([]*rules, len(blocks))
	for i, b := range blocks {
		text, _, _ := strings.Cut(b, "```")
		r, err := parseRules(text, name)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		all[i] = r
	}
	refusal := all[0].check(Server{Name: "github"}, Tool{Name: "delete_repo"})
	_, broken := parseRules("# mine\n[servers.github]\nalow = []", name)
	asked := all[1].ask(t.Context(), Call{Server: Server{Name: "bank"}, Tool: Tool{Name: "transfer", ReadOnly: true}})
	for _, err := range []error{refusal, asked, (&Enforcer{err: broken}).ServerDenied(Server{})} {
		if err == nil || !strings.Contains(string(doc), "\n"+err.Error()+"\n") {
			t.Errorf("the document does not show: %v", err)
		}
	}
}

// FuzzPolicy: whatever the file holds, it is understood or refused.
func FuzzPolicy(f *testing.F) {
	f.Add("[default]\nallow = ['a*']\n[servers.x.tools.y]\ncallsPerRun = 1")
	f.Add("\x0f")
	f.Add("servers = {a = {deny = 'x', deni = 'y'}}")
	f.Add("\ufeff[servers.'a,b']\n'' = 1")
	for _, policy := range seeds.Blocks(f, "toml") {
		f.Add(policy)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parseRules(text, "policy.toml")
		if (r == nil) == (err == nil) {
			t.Fatalf("rules %v, error %v", r, err)
		}
		if r != nil {
			_ = (&Enforcer{policy: &Policy{now: time.Now, minutes: map[limitKey][]time.Time{}}, rules: r, counts: map[limitKey]int{}}).Authorize(t.Context(), Call{Server: Server{Name: "x"}, Tool: Tool{Name: "y"}})
		}
	})
}
