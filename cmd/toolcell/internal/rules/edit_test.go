package rules

import (
	"bytes"
	"strings"
	"testing"
)

// TestEditsChangeNothingElse: comments, order, line ends and indentation stay.
func TestEditsChangeNothingElse(t *testing.T) {
	bank := []string{"servers", "bank"}
	deny, ask, notAsk := listed(bank, "deny", "pay"), listed(bank, "ask", "pay"), unlisted(bank, "ask", "pay")
	when := asked(bank, "pay", []string{"to", "a.b"}, ">=", "1e2")
	for _, c := range []struct {
		name         string
		edit         edit
		before, want string // "" is refused
	}{
		{"no file", deny, "", "[servers.bank]\ndeny = [\"pay\"]\n"},
		{"only comments", deny, "# mine\n", "# mine\n\n[servers.bank]\ndeny = [\"pay\"]\n"},
		{"no section", deny, "[default]\nask = 'x' # why", "[default]\nask = 'x' # why\n\n[servers.bank]\ndeny = [\"pay\"]\n"},
		{"no key", deny, "[servers.bank] # of me\nopen = true\n\n# next\n[default]\n", "[servers.bank] # of me\nopen = true\ndeny = [\"pay\"]\n\n# next\n[default]\n"},
		{"an empty section at the end", deny, "[servers.bank]", "[servers.bank]\ndeny = [\"pay\"]\n"},
		{"a string", deny, "[servers.bank]\ndeny = 'x*' # why\nopen = true\n", "[servers.bank]\ndeny = ['x*', \"pay\"] # why\nopen = true\n"},
		{"a list", deny, "[servers.bank]\ndeny = ['a', \"b\"]\n", "[servers.bank]\ndeny = ['a', \"b\", \"pay\"]\n"},
		{"an empty list", deny, "[servers.bank]\ndeny = [ # none\n]\n", "[servers.bank]\ndeny = [\"pay\" # none\n]\n"},
		{"a list of lines", deny, "[servers.bank]\ndeny = [\n  'a', # one\n  'b', # two, [x]\n  # end\n]\n", "[servers.bank]\ndeny = [\n  'a', # one\n  'b', \"pay\", # two, [x]\n  # end\n]\n"},
		{"a quoted header", deny, "[ \"servers\" . 'bank' ]\nopen = true\n", "[ \"servers\" . 'bank' ]\nopen = true\ndeny = [\"pay\"]\n"},
		{"line ends of Windows", deny, "[servers.bank]\r\nopen = true\r\n", "[servers.bank]\r\nopen = true\r\ndeny = [\"pay\"]\r\n"},
		{"a key with dots", deny, "servers.bank.deny = 'x'\n", "servers.bank.deny = ['x', \"pay\"]\n"},
		{"other keys with dots", deny, "servers.bank.open = true\n", ""},
		{"an inline table", deny, "servers.bank = { deny = ['x'] }\n", ""},
		{"all servers inline", deny, "servers = { bank = { open = true } }\n", ""},
		{"only tools", deny, "[servers.bank.tools.pay]\ncallsPerRun = 1\n", "[servers.bank.tools.pay]\ncallsPerRun = 1\n\n[servers.bank]\ndeny = [\"pay\"]\n"},
		{"no TOML", deny, "[servers.bank\n", ""},
		{"a string like a comment", ask, "[servers.bank]\nask = 'x#\"y' # why\n", "[servers.bank]\nask = ['x#\"y', \"pay\"] # why\n"},
		{"cut the only one", notAsk, "[servers.bank]\nask = 'pay' # why\n", "[servers.bank]\nask = [] # why\n"},
		{"cut the first", notAsk, "[servers.bank]\nask = ['pay', 'x']\n", "[servers.bank]\nask = ['x']\n"},
		{"cut the last", notAsk, "[servers.bank]\nask = ['x', 'pay']\n", "[servers.bank]\nask = ['x']\n"},
		{"cut a middle line", notAsk, "[servers.bank]\nask = [\n  'x', # one\n  \"pay\" # two\n  , 'z']\n", "[servers.bank]\nask = [\n  'x', # one\n   # two\n  'z']\n"},
		{"cut the last line", notAsk, "[servers.bank]\nask = [\n  'x', # one\n  'p\u0061y', # two\n]\n", "[servers.bank]\nask = [\n  'x', # one\n  # two\n]\n"},
		{"cut what is not there", notAsk, "[servers.bank]\nask = ['x']\n", ""},
		{"a condition", when, "[servers.bank]\nopen = true\n\n[default]\n", "[servers.bank]\nopen = true\n\n[[servers.bank.tools.pay.when]]\npath = [\"to\", \"a.b\"]\nop = \">=\"\nvalue = 1e2\n\n[default]\n"},
		{"one more condition", when, "[[servers.bank.tools.pay.when]]\npath = 'a'\nop = '=='\nvalue = 1", "[[servers.bank.tools.pay.when]]\npath = 'a'\nop = '=='\nvalue = 1\n\n[[servers.bank.tools.pay.when]]\npath = [\"to\", \"a.b\"]\nop = \">=\"\nvalue = 1e2\n"},
		{"conditions inline", when, "[servers.bank.tools.pay]\nwhen = [{ path = 'a', op = '==', value = 1 }]\n", ""},
	} {
		got, err := c.edit.apply([]byte(c.before))
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%s: it gives %q", c.name, got)
		case c.want != "" && (err != nil || string(got) != c.want):
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

// TestHostileNamesAreQuoted: the key is the name, and nothing else comes into the file.
func TestHostileNamesAreQuoted(t *testing.T) {
	for _, name := range []string{
		"a\"]\ndeny = []", "a.b", `\`, `'`, "]", "#", "a\x00b", "\x7f", "\u202eb", "\u2028", "é", "e\u0301", "日本", "\U0001f4a3", "\u3164", "=", "a b", "\r\n[default]\nallow = '*'", strings.Repeat("x", 1000),
	} {
		section := []string{"servers", name}
		after, err := listed(section, "deny", name).apply([]byte("# mine\n"))
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if n := strings.Count(string(after), "\n"); n != 4 {
			t.Errorf("%q gives %d lines: %q", name, n, after)
		}
		for _, r := range string(after) {
			if r != '\n' && (r < ' ' || r == 0x7f || r == 0x202e || r == 0x2028 || r == 0x3164 || r == 0x301) {
				t.Errorf("%q: %q has %q as it is", name, after, r)
			}
		}
		if after, err = asked(section, name, []string{name}, "==", tomlString(name)).apply(after); err != nil {
			t.Errorf("%q as an argument: %v %q", name, err, after)
		}
	}
	if after, err := listed([]string{"servers", "a"}, "deny", "\xff").apply(nil); err == nil {
		t.Errorf("what is no text gives %q", after)
	}
}

// FuzzEdits: no text makes an edit panic, and what one gives is TOML that has all comments.
func FuzzEdits(f *testing.F) {
	for _, seed := range []string{
		"", bankPolicy, "[servers]\nbank.ask = '''x\n#'''\n", "servers.bank = {ask=['pay',]}", "[servers.bank]\nask=[\n'pay'#,\n,'x']",
		"[servers.bank]\r\nask=\"\"\"pay\"\"\"\r\n", "[servers.bank]\nask = [['pay'], 'pay', 1]",
	} {
		f.Add([]byte(seed), "pay")
	}
	f.Fuzz(func(t *testing.T, source []byte, tool string) {
		bank := []string{"servers", "bank"}
		for _, e := range []edit{listed(bank, "ask", tool), unlisted(bank, "ask", tool), asked(bank, tool, []string{tool}, "==", tomlString(tool))} {
			after, err := e.apply(source)
			if err != nil {
				continue
			}
			if _, err := says(after); err != nil || bytes.Count(after, []byte("#")) < bytes.Count(source, []byte("#"))-strings.Count(tool, "#") {
				t.Errorf("%q gives %q, %v", source, after, err)
			}
		}
	})
}
