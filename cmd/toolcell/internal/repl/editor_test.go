package repl

import (
	"slices"
	"testing"
)

func TestKeysOfAPaste(t *testing.T) {
	for name, tt := range map[string]struct {
		in, out string
		ends    []bool
	}{
		"typed":                   {"a\tb\x1b[A\x03\r", "a\tb\x1b[A\x03\r", []bool{false}},
		"pasted":                  {"\x1b[200~a\r\tb\r\nc\nd\x1b[201~\r", "a\r    b\rc\nd\r", []bool{true, true, true, false}},
		"without keys":            {"\x1b[200~a\x03\x04\x1b[A\x7f\x1b[201~", "a[A", nil},
		"with an empty line":      {"\x1b[200~a\r\rb\r\x1b[201~", "a\r\rb\r", []bool{true, true, true}},
		"with one at the end":     {"\x1b[200~a\r  \r\x1b[201~", "a\r  \r", []bool{true, false}},
		"two":                     {"\x1b[200~a\r\x1b[201~b\r\x1b[200~c\x1b[201~", "a\rb\rc", []bool{true, false}},
		"an end without a paste":  {"a\x1b[201~\r", "a\x1b[201~\r", []bool{false}},
		"a beginning inside":      {"\x1b[200~a\x1b[200~\r\x1b[201~", "a[200~\r", []bool{true}},
		"other keys that look so": {"\x1b[20~\x1b[2~", "\x1b[20~\x1b[2~", nil},
	} {
		for size := 3; size <= len(tt.in)+3; size++ {
			if slices.ContainsFunc(slices.Collect(slices.Chunk([]byte(tt.in), size)), func(part []byte) bool { return part[len(part)-1] == 0x1b }) {
				continue // a lone Escape is a key, and passed on at once
			}
			k, out := &keys{typed: func() {}}, ""
			for part := range slices.Chunk([]byte(tt.in), size) {
				out += string(k.pass(part))
			}
			if out != tt.out || !slices.Equal(k.ends, tt.ends) {
				t.Errorf("%s in parts of %d: %q %v, want %q %v", name, size, out, k.ends, tt.out, tt.ends)
			}
		}
	}
}

func TestEscapeAloneIsAKey(t *testing.T) {
	k := &keys{typed: func() {}}
	if out := string(k.pass([]byte("\x1b"))); out != "\x1b" {
		t.Errorf("got %q", out)
	}
}

func TestPastedBlock(t *testing.T) {
	var b block
	var ready []string
	for _, line := range []string{"", "def f():", "    a = 1", "", "    return a", "  ", "f()", "x = '''", "", "'''"} {
		ready = append(ready, b.paste(line)...)
	}
	want := []string{"def f():\n    a = 1\n\n    return a\n  \n", "f()\n", "x = '''\n\n'''\n"}
	if !slices.Equal(ready, want) || !b.empty() {
		t.Errorf("got %q", ready)
	}
}

func TestTabCompletesTheLastName(t *testing.T) {
	for line, want := range map[string]struct{ asked, head string }{
		"na":             {"na", ""},
		"x = na":         {"na", "x = "},
		"f(na":           {"na", "f("},
		"a.b.c":          {"a.b.c", "a.b."},
		"-a.":            {"a.", "-a."},
		"größe.x":        {"größe.x", "größe."},
		"f().na":         {"", "f().na"},
		"x[0].na":        {"", "x[0].na"},
		"'text'.na":      {"", "'text'.na"},
		"3.na":           {"", "3.na"},
		"a..b":           {"", "a..b"},
		"x = ":           {"", "x = "},
		"print(a, b.c.d": {"b.c.d", "print(a, b.c."},
	} {
		asked := ""
		head, _, tail := completeLine(line+"|tail", len([]rune(line)), func(dotted string) []string {
			asked = dotted
			return nil
		})
		if asked != want.asked || head != want.head || tail != "|tail" {
			t.Errorf("%q: asks for %q, %q, %q", line, asked, head, tail)
		}
	}
	_, names, _ := completeLine("a.b", 3, func(string) []string { return []string{"bad name", "b\x1b[2J", "other", "b", "bee"} })
	if !slices.Equal(names, []string{"b", "bee"}) {
		t.Errorf("got %q", names)
	}
	if head, names, tail := completeLine("  x", 1, nil); head != " " || !slices.Equal(names, []string{"    "}) || tail != " x" {
		t.Errorf("got %q %q %q", head, names, tail)
	}
}
