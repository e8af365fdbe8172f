package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/rules"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// policyFile is a policy with this text, or none.
func policyFile(text string) rules.File {
	f := rules.File{Path: "/home/me/policy.toml", Policy: policy.None(), Named: func(server, tool string) (policy.Server, policy.Tool) {
		return policy.Server{Name: server, Alias: server}, policy.Tool{Name: tool, Alias: tool}
	}}
	if text != "" {
		f.There, f.Text, f.Policy = true, []byte(text), policy.Parse([]byte(text), f.Path)
	}
	return f
}

// pay writes runs pay0000000 and so on, each of which calls bank.pay with an amount and mail.send.
func (v *visitor) pay(amounts ...int) {
	v.t.Helper()
	j := v.journal()
	for i, amount := range amounts {
		run := j.Begin(fmt.Sprintf("pay%07d", i), "")
		for _, e := range []record.Entry{
			record.RunStart{Command: "serve", Grants: record.Grants{Servers: []string{"bank", "mail"}}},
			record.CallStart{Call: 1, Effect: "tools/call", Server: "bank", Tool: "pay", Writes: true, Arguments: record.TextOf(fmt.Sprintf(`{"amount":%d}`, amount))},
			record.CallEnd{Call: 1, Server: "bank", Tool: "pay", Writes: true, Outcome: record.OK},
			record.CallStart{Call: 2, Effect: "resources/read", Server: "mail", Tool: "mail://1"},
			record.RunEnd{Status: "success", Duration: 1000},
		} {
			if err := run.Append(e); err != nil {
				v.t.Fatal(err)
			}
		}
	}
}

// TestThePolicyIsShown as it was understood, with what each rule matched.
func TestThePolicyIsShown(t *testing.T) {
	file := policyFile("")
	v := visit(t, func(o *Options) { o.Policy = func() rules.File { return file } })
	v.pay(100, 200, 300)
	for text, wants := range map[string][]string{
		"": {"There is no policy file", "6 calls would be allowed since no rule is about them"},
		"[servers.bank]\ndeny = 'pay'\nopen = true":                                                          {"[servers.bank]", "deny = &#34;pay&#34;", "others may see", `<td class="n">3</td>`, "3 calls would be allowed", "(changed)", "what no section is about is allowed"},
		"[default]\nask = 'writes'\n[[servers.bank.tools.pay.when]]\npath = 'amount'\nop = '>'\nvalue = 150": {"what [default] says", "amount &gt; 150", "[[servers.bank.tools.pay.when]]", `<td class="n">2</td>`},
		"[servers.bank]\nalow = 1\n":                                                                         {"Code may call nothing", ":2:1:"},
	} {
		file = policyFile(text)
		file.Remarks = []rules.Remark{{Text: "<b>odd</b>", Wrong: true}}
		status, body := v.get("/policy")
		for _, want := range wants {
			if status != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%q: %d, no %q in %s", text, status, want, body)
			}
		}
		if wrong := strings.Contains(text, "alow"); strings.Contains(body, "&lt;b&gt;odd") == wrong || strings.Contains(body, "bank.pay") == wrong {
			t.Errorf("%q: the remark and the calls are there or not: %s", text, body)
		}
	}
	file = policyFile("[servers.bank]\nalow = 1\n")
	if status, body := v.get("/policy/rule?run=pay0000000&call=1"); status != http.StatusConflict || !strings.Contains(body, ":2:1:") {
		t.Errorf("a rule for a file with an error: %d %s", status, body)
	}
}

// TestServesThatHadReadAFileThatIsGoneAreNamed: they refuse every call, and others none.
func TestServesThatHadReadAFileThatIsGoneAreNamed(t *testing.T) {
	file := policyFile("")
	v := visit(t, func(o *Options) { o.Policy = func() rules.File { return file } })
	const gone, none = "The policy file is gone.", "There is no policy file, so"
	if _, body := v.get("/policy"); strings.Contains(body, gone) || !strings.Contains(body, none) {
		t.Errorf("nothing refuses: %s", body)
	}
	file.Refusing = []string{"toolcell serve (PID 7, started by <b>)", "toolcell serve (PID 8)"}
	if _, body := v.get("/policy"); !strings.Contains(body, gone) || strings.Contains(body, none) || !strings.Contains(body, "(PID 7, started by &lt;b&gt;), toolcell serve (PID 8).") {
		t.Errorf("two refuse: %s", body)
	}
}

// TestRulesAreOfferedForCallsOfTools alone, with what they would change.
func TestRulesAreOfferedForCallsOfTools(t *testing.T) {
	var shown timeline.Options
	reads := ""
	v := visit(t, func(o *Options) {
		o.Policy = func() rules.File { return policyFile("# mine\n[servers.bank]\nopen = true\n") }
		o.Shown = func() timeline.Options { return shown }
		o.ReadsOnly = func() string { return reads }
	})
	v.pay(100, 200, 300)
	const link = "/policy/rule?run=pay0000001&amp;call="
	if _, body := v.get("/runs/pay0000001"); !strings.Contains(body, link+"1") || strings.Contains(body, link+"2") {
		t.Errorf("the links of a run: %s", body)
	}
	status, body := v.get("/policy/rule?run=pay0000001&call=1")
	for _, want := range []string{
		"&#43;deny = [&#34;pay&#34;]", "# mine", `data-copy="lines-1"`, `data-copy="command-1"`, "3 calls of the last 3 runs", "Ask about bank.pay if amount &gt;= 200", "[[servers.bank.tools.pay.when]]", "2 calls of the last 3 runs", `<a href="/runs/pay0000002#call-1">`, "/home/me/policy.toml",
	} {
		if status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%d, no %q in %s", status, want, body)
		}
	}
	for _, path := range []string{"/policy/rule?run=pay0000001&call=2", "/policy/rule?run=pay0000001&call=9", "/policy/rule?run=pay0000001&call=x", "/policy/rule?run=no&call=1", "/policy/rule"} {
		if status, body := v.get(path); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	shown.Hide = func(server string) bool { return server == "mail" }
	if _, body := v.get("/policy/rule?run=pay0000001&call=1"); strings.Contains(body, "200") || !strings.Contains(body, "Deny bank.pay") || !strings.Contains(body, "not shown") {
		t.Errorf("the arguments of a private run: %s", body)
	}
	reads = "This page only shows."
	if status, body := v.get("/policy/rule?run=pay0000001&call=1"); status != http.StatusForbidden || strings.Contains(body, "deny") {
		t.Errorf("a page that only shows offers rules: %d %s", status, body)
	}
	for _, path := range []string{"/policy", "/runs/pay0000001"} {
		if _, body := v.get(path); strings.Contains(body, "/policy/rule") || !strings.Contains(body, "pay") {
			t.Errorf("%s links to rules: %s", path, body)
		}
	}
}

// TestLinesAreToCopyOnlyIfAddingThemIsEnough, and the diff of a file with line ends of Windows says so.
func TestLinesAreToCopyOnlyIfAddingThemIsEnough(t *testing.T) {
	text := ""
	v := visit(t, func(o *Options) { o.Policy = func() rules.File { return policyFile(text) } })
	v.pay(100)
	for _, c := range []struct {
		text               string
		lines, diffs, cuts int
		windows            bool
	}{
		{"", 3, 3, 0, false},
		{"[servers.bank]\nask = ['pay']\n", 1, 2, 1, false}, // no longer to ask, and to deny
		{"[servers.bank]\r\nask = ['pay']\r\n", 1, 2, 1, true},
	} {
		text = c.text
		_, body := v.get("/policy/rule?run=pay0000000&call=1")
		if strings.Count(body, `data-copy="lines-`) != c.lines || strings.Count(body, `data-copy="command-`) != c.diffs || strings.Count(body, "changes an existing line: use the command.") != c.cuts {
			t.Errorf("%q: %s", c.text, body)
		}
		if windows := strings.Contains(body, "␍\n") && strings.Contains(body, "line ends of Windows"); windows != c.windows || strings.Contains(body, "\r") {
			t.Errorf("%q: %s", c.text, body)
		}
	}
}
