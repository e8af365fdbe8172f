package edit

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestSetMakesOneMember, byte for byte, in files that are written in ways of their own.
func TestSetMakesOneMember(t *testing.T) {
	for name, tt := range map[string]struct{ file, before, path, value, after string }{
		"members indented in their own way": {
			"c.json", "{\n  \"s\": {\n  \"a\": 1\n  }\n}\n", "s b", `1`, "{\n  \"s\": {\n  \"a\": 1,\n  \"b\": 1\n  }\n}\n",
		},
		"JSON, a value with spaces":    {"c.json", "{\n  \"s\": {}\n}\n", "s b", ` [ 1 ,2 ] `, "{\n  \"s\": {\n    \"b\": [1, 2]\n  }\n}\n"},
		"YAML, a value with spaces":    {"c.yaml", "s:\n  a: 1\n", "s b", `[ 1 ,2 ]`, "s:\n  a: 1\n  b: [1, 2]\n"},
		"YAML, one that is null":       {"c.yaml", "s:\nb: 1\n", "s b", `{"x": 1}`, "b: 1\ns:\n  b:\n    x: 1\n"},
		"YAML, an empty object":        {"c.yaml", "s:\n  a: 1\n", "s b", `{}`, "s:\n  a: 1\n  b: {}\n"},
		"YAML, at the top":             {"c.yaml", "a: 1\n", "b", `1`, "a: 1\nb: 1\n"},
		"TOML, behind another key":     {"c.toml", "[s.b]\nx = 1\ncommand = '/a' # old\n", "s b command", `"/new"`, "[s.b]\nx = 1\ncommand = \"/new\" # old\n"},
		"TOML, in an empty table":      {"c.toml", "a = 1\n\n[s.b] # mine\n\n[t]\n", "s b x", `1`, "a = 1\n\n[s.b] # mine\nx = 1\n\n[t]\n"},
		"TOML, no line end":            {"c.toml", "[s.b]\r\nx = 1", "s b y", `2`, "[s.b]\r\nx = 1\r\ny = 2\r\n"},
		"TOML, an empty object within": {"c.toml", "", "s b", `{"x": {}}`, "[s.b]\nx = {}\n"},
	} {
		text, err := newDocument(tt.file, []byte(tt.before))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := text.set([]byte(tt.value), strings.Fields(tt.path)...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := string(text.bytes()); got != tt.after {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.after)
		}
	}
}

// TestSetRefusesWhatIsNoValue of the format: the text stays as it was.
func TestSetRefusesWhatIsNoValue(t *testing.T) {
	for _, tt := range []struct{ file, value, want string }{
		{"c.json", ``, ""},
		{"c.json", `1 2`, ""},
		{"c.yaml", ``, ""},
		{"c.yaml", `1 2`, ""},
		{"c.toml", ``, ""},
		{"c.toml", `1 2`, "cannot be changed safely"},
		{"c.toml", `null`, "TOML has no null"},
		{"c.toml", `{"x": null}`, "TOML has no null"},
	} {
		before := map[string]string{"c.json": "{\"s\": {\"a\": 1}}\n", "c.yaml": "s:\n  a: 1\n", "c.toml": "[s]\na = 1\n"}[tt.file]
		text, err := newDocument(tt.file, []byte(before))
		if err != nil {
			t.Fatal(err)
		}
		if err := text.set([]byte(tt.value), "s", "b"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: setting %q: %v, want %q", tt.file, tt.value, err, tt.want)
		}
		if got := string(text.bytes()); got != before {
			t.Errorf("%s: setting %q changed it to %q", tt.file, tt.value, got)
		}
	}
}

// TestCuttingWhatIsNotThere is told apart from what cannot be cut, and changes nothing.
func TestCuttingWhatIsNotThere(t *testing.T) {
	for file, texts := range map[string][]string{
		"c.json": {"", "{}\n", `{"s": 1}`, `{"s": []}`, `{"s": {}}`},
		"c.toml": {"", "s = 1\n", "[s]\na = 1\n"},
		"c.yaml": {"", "s: 1\n", "s:\n- b\n", "s:\n", "s:\n  a: 1\n"},
	} {
		for _, before := range texts {
			text, err := newDocument(file, []byte(before))
			if err != nil {
				t.Fatal(err)
			}
			if value, err := text.cut("s", "b"); !errors.Is(err, errAbsent) {
				t.Errorf("%s: cut %s from %q: %v", file, value, before, err)
			}
			if got := string(text.bytes()); got != before {
				t.Errorf("%s: %q became %q", file, before, got)
			}
		}
	}
}

// TestCutLeavesTheRestAsItIsWritten in files where commas, lists and comments stand in
// unusual places, and returns plain JSON.
func TestCutLeavesTheRestAsItIsWritten(t *testing.T) {
	for name, tt := range map[string]struct{ file, before, after, value string }{
		"a comment before the comma":  {"c.json", `{"s": {"a": 1 /* of a */, "b": 2}}`, `{"s": {"a": 1 /* of a */}}`, `2`},
		"comments within":             {"c.json", "{\"s\": {\"a\": 1, \"b\": { // b\n \"x\": [1,], }}}", `{"s": {"a": 1}}`, `{"x":[1]}`},
		"a list that is not indented": {"c.yaml", "s:\n  b:\n  - 1\n  - 2\n  c: 3\n", "s:\n  c: 3\n", `[1,2]`},
	} {
		text, err := newDocument(tt.file, []byte(tt.before))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		value, err := text.cut("s", "b")
		if err != nil || !json.Valid(value) || string(value) != tt.value {
			t.Errorf("%s: the value is %s, %v", name, value, err)
		}
		if got := string(text.bytes()); got != tt.after {
			t.Errorf("%s: left\n%s\nwant\n%s", name, got, tt.after)
		}
	}
}

// TestMembersThatStandElsewhereAreNotChanged: what YAML's aliases and merges bring in is
// written in another place, which others may use too.
func TestMembersThatStandElsewhereAreNotChanged(t *testing.T) {
	for name, before := range map[string]string{
		"the object is an alias":        "x: &x\n  b: {command: y}\ns: *x\n",
		"the object is merged":          "x: &x\n  s:\n    b:\n      command: y\n<<: *x\n",
		"the member is merged":          "x: &x\n  b:\n    command: y\ns:\n  <<: *x\n  a: 1\n",
		"in braces":                     "s: {b: {command: y}}\n",
		"over lines in braces":          "s: {\n  b: {\n    command: y\n  }\n}\n",
		"an alias of a list of members": "x: &x {b: {command: y}}\ns: *x\n",
	} {
		t.Run(name, func(t *testing.T) {
			text, err := newDocument("c.yaml", []byte(before))
			if err != nil {
				t.Fatal(err)
			}
			_, cut := text.cut("s", "b")
			for _, err := range []error{cut, text.set([]byte(`"z"`), "s", "b", "command")} {
				if err == nil {
					t.Error("it was not refused")
				}
			}
			if got := string(text.bytes()); got != before {
				t.Errorf("%q became %q", before, got)
			}
		})
	}
}

// TestSetAndCutKeepTheRest of a file that is not a client's.
func TestSetAndCutKeepTheRest(t *testing.T) {
	for name, tt := range map[string]struct{ before, set, cut string }{
		"no file":           {"", "k = 1\n", ""},
		"comments alone":    {"# mine\n", "# mine\nk = 1\n", "# mine\n"},
		"behind other keys": {"a = 1 # one\nl = [\n 1,\n]\n# end", "a = 1 # one\nl = [\n 1,\n]\nk = 1\n# end", "a = 1 # one\nl = [\n 1,\n]\n# end"},
		"before a table":    {"# mine\n[t]\nx = 1\n", "# mine\nk = 1\n[t]\nx = 1\n", "# mine\n[t]\nx = 1\n"},
		"no line end":       {"a = 1", "a = 1\nk = 1\n", "a = 1\n"},
		"a mark":            {"\ufeffa = 1\r\n", "\ufeffa = 1\r\nk = 1\r\n", "\ufeffa = 1\r\n"},
		"another value":     {"k = 'x' # why\n", "k = 1 # why\n", ""},
	} {
		set, err := Set("c.toml", []byte(tt.before), []byte("1"), "k")
		if err != nil || string(set) != tt.set {
			t.Errorf("%s: %q, %v; want %q", name, set, err, tt.set)
		}
		cut, was, err := Cut("c.toml", set, "k")
		if err != nil || !was || string(cut) != tt.cut {
			t.Errorf("%s: cut: %q, %t, %v; want %q", name, cut, was, err, tt.cut)
		}
	}
	if _, err := Set("c.toml", []byte("k = "), []byte("1"), "k"); err == nil {
		t.Error("a text that is no TOML is changed")
	}
	if rest, was, err := Cut("c.toml", []byte("a = 1"), "k"); was || err != nil || string(rest) != "a = 1" {
		t.Errorf("what is not there: %q, %t, %v", rest, was, err)
	}
}
