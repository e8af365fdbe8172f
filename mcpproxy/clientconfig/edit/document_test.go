package edit

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

const entry = `{"command": "/opt/toolcell", "args": ["serve"], "env": {"A": "b, \",\" <c>"}}`

// TestSetKeepsTheRest: a new member is written as its neighbors are, and not
// a byte of the rest changes.
func TestSetKeepsTheRest(t *testing.T) {
	for name, tt := range map[string]struct{ file, key, before, after string }{
		"no file": {"c.json", "mcpServers", "", `{
  "mcpServers": {
    "toolcell": {
      "command": "/opt/toolcell",
      "args": ["serve"],
      "env": {
        "A": "b, \",\" <c>"
      }
    }
  }
}
`},
		"beside others, with comments and tabs": {"c.json", "mcpServers", `// mine
{
	"theme": "dark", // of course
	"mcpServers": {
		// the first
		"a": { "command": "x" } // one
		// "old": {}
	},
	"zoom": 1.50
}`, `// mine
{
	"theme": "dark", // of course
	"mcpServers": {
		// the first
		"a": { "command": "x" }, // one
		"toolcell": {
			"command": "/opt/toolcell",
			"args": ["serve"],
			"env": {
				"A": "b, \",\" <c>"
			}
		}
		// "old": {}
	},
	"zoom": 1.50
}`},
		"trailing commas": {
			"c.json", "s", "{\n    \"s\": {\n        \"a\": {},\n    },\n}\n",
			"{\n    \"s\": {\n        \"a\": {},\n        \"toolcell\": {\n            \"command\": \"/opt/toolcell\",\n            \"args\": [\"serve\"],\n            \"env\": {\n                \"A\": \"b, \\\",\\\" <c>\"\n            }\n        },\n    },\n}\n",
		},
		"Windows' line ends and mark": {
			"c.json", "s", "\xef\xbb\xbf{\r\n  \"s\": {}\r\n}\r\n",
			"\xef\xbb\xbf{\r\n  \"s\": {\r\n    \"toolcell\": {\r\n      \"command\": \"/opt/toolcell\",\r\n      \"args\": [\"serve\"],\r\n      \"env\": {\r\n        \"A\": \"b, \\\",\\\" <c>\"\r\n      }\r\n    }\r\n  }\r\n}\r\n",
		},
		"a key that is not there": {
			"c.json", "s", "{\n  \"a\": [1,2] /* two\n lines */\n}",
			"{\n  \"a\": [1,2], /* two\n lines */\n  \"s\": {\n    \"toolcell\": {\n      \"command\": \"/opt/toolcell\",\n      \"args\": [\"serve\"],\n      \"env\": {\n        \"A\": \"b, \\\",\\\" <c>\"\n      }\n    }\n  }\n}",
		},
		"an empty object on one line": {
			"c.json", "s", "// mine\n{ \"s\": {} }",
			"// mine\n{\n  \"s\": {\n    \"toolcell\": {\n      \"command\": \"/opt/toolcell\",\n      \"args\": [\"serve\"],\n      \"env\": {\n        \"A\": \"b, \\\",\\\" <c>\"\n      }\n    }\n  }\n}",
		},
		"one beside others on one line": {
			"c.json", "s", "{\"a\": 1, \"s\": {}}\n",
			"{\"a\": 1, \"s\": {\n  \"toolcell\": {\n    \"command\": \"/opt/toolcell\",\n    \"args\": [\"serve\"],\n    \"env\": {\n      \"A\": \"b, \\\",\\\" <c>\"\n    }\n  }\n}}\n",
		},
		"nothing on one line": {
			"c.json", "s", "{}\n",
			"{\n  \"s\": {\n    \"toolcell\": {\n      \"command\": \"/opt/toolcell\",\n      \"args\": [\"serve\"],\n      \"env\": {\n        \"A\": \"b, \\\",\\\" <c>\"\n      }\n    }\n  }\n}\n",
		},
		"TOML": {
			"c.toml", "mcp_servers", "model = \"o\" # mine\n\n[mcp_servers.a]\ncommand = \"\"\"\n[mcp_servers.b]\n\"\"\"",
			"model = \"o\" # mine\n\n[mcp_servers.a]\ncommand = \"\"\"\n[mcp_servers.b]\n\"\"\"\n\n[mcp_servers.toolcell]\ncommand = \"/opt/toolcell\"\nargs = [\"serve\"]\nenv = { A = \"b, \\\",\\\" <c>\" }\n",
		},
		"no TOML": {"c.toml", "mcp_servers", "", "[mcp_servers.toolcell]\ncommand = \"/opt/toolcell\"\nargs = [\"serve\"]\nenv = { A = \"b, \\\",\\\" <c>\" }\n"},
		"YAML": {
			"c.yaml", "extensions", "# mine\nextensions:\n    a:\n        cmd: x # y\n\n# next\nother: 1\n",
			"# mine\nextensions:\n    a:\n        cmd: x # y\n    toolcell:\n      command: \"/opt/toolcell\"\n      args: [\"serve\"]\n      env: { \"A\": \"b, \\\",\\\" <c>\" }\n\n# next\nother: 1\n",
		},
		"YAML without the key":    {"c.yaml", "extensions", "other: 1", "other: 1\nextensions:\n  toolcell:\n    command: \"/opt/toolcell\"\n    args: [\"serve\"]\n    env: { \"A\": \"b, \\\",\\\" <c>\" }\n"},
		"YAML with a comment":     {"c.yaml", "extensions", "extensions: # mine\nb: 1\n", "# mine\nb: 1\nextensions:\n  toolcell:\n    command: \"/opt/toolcell\"\n    args: [\"serve\"]\n    env: { \"A\": \"b, \\\",\\\" <c>\" }\n"},
		"YAML with nothing in it": {"c.yaml", "extensions", "extensions: {}\nb: 1\n", "b: 1\nextensions:\n  toolcell:\n    command: \"/opt/toolcell\"\n    args: [\"serve\"]\n    env: { \"A\": \"b, \\\",\\\" <c>\" }\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := newDocument(tt.file, []byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			if err := text.set([]byte(entry), tt.key, "toolcell"); err != nil {
				t.Fatal(err)
			}
			if got := string(text.bytes()); got != tt.after {
				t.Errorf("got\n%s\nwant\n%s", got, tt.after)
			}
		})
	}
}

// TestCutLeavesComments above and beside an entry where they are, and nothing else, and its
// value can be set elsewhere.
func TestCutLeavesComments(t *testing.T) {
	for name, tt := range map[string]struct{ file, key, before, after, elsewhere string }{
		"in the middle": {"c.json", "s", `{
  "s": {
    "a": 1, // of a
    // about b
    // two lines
    "b": {
      "x": [1], // in b
    }, // of b

    "c": 3
  }
}`, `{
  "s": {
    "a": 1, // of a
    // about b
    // two lines
    // of b

    "c": 3
  }
}`, `{
  "s": {
    "b": {
      "x": [1]
    }
  }
}
`},
		"the last, with a comment": {
			"c.json", "s", "{\n  \"s\": {\n    \"a\": 1, // of a\n    /* about b */\n    \"b\": 2 // of b\n  }\n}\n",
			"{\n  \"s\": {\n    \"a\": 1 // of a\n    /* about b */\n    // of b\n  }\n}\n", "{\n  \"s\": {\n    \"b\": 2\n  }\n}\n",
		},
		"before the comma": {
			"c.json", "s", "{\n  \"s\": {\n    \"b\": 2 /* of b */,\n    \"c\": 3\n  }\n}\n",
			"{\n  \"s\": {\n    /* of b */\n    \"c\": 3\n  }\n}\n", "{\n  \"s\": {\n    \"b\": 2\n  }\n}\n",
		},
		"the last":       {"c.json", "s", "{\n  \"s\": {\n    \"a\": 1, // of a\n    \"b\": 2\n  }\n}\n", "{\n  \"s\": {\n    \"a\": 1 // of a\n  }\n}\n", "{\n  \"s\": {\n    \"b\": 2\n  }\n}\n"},
		"the only one":   {"c.json", "s", "{\n  \"s\": {\n    \"b\": 2\n  }\n}\n", "{\n  \"s\": {}\n}\n", "{\n  \"s\": {\n    \"b\": 2\n  }\n}\n"},
		"on one line":    {"c.json", "s", `{"s": {"a": 1, "b": 2, "c": 3}}`, `{"s": {"a": 1, "c": 3}}`, "{\n  \"s\": {\n    \"b\": 2\n  }\n}\n"},
		"last, one line": {"c.json", "s", `{"s": {"a": 1, "b": 2}}`, `{"s": {"a": 1}}`, "{\n  \"s\": {\n    \"b\": 2\n  }\n}\n"},
		"trailing comma": {"c.json", "s", "{\"s\": {\n  \"a\": 1,\n  \"b\": 2,\n}}", "{\"s\": {\n  \"a\": 1,\n}}", "{\n  \"s\": {\n    \"b\": 2\n  }\n}\n"},
		"tables": {
			"c.toml", "s", "a = 1\n\n# b is good\n[s.b]\ncommand = \"x\" # of b\n\n[s.b.env]\nA = \"[s.c]\"\n\n# c\n[s.c]\ncommand = 1\n",
			"a = 1\n\n# b is good\n\n# c\n[s.c]\ncommand = 1\n", "[s.b]\ncommand = \"x\"\nenv = { A = \"[s.c]\" }\n",
		},
		"tables apart": {"c.toml", "s", "[s.b]\nx = 1\n[t]\ny = 1\n[s.'b'.env]\nA = '''\n[t]\n'''\n", "[t]\ny = 1\n", "[s.b]\nx = 1\nenv = { A = \"[t]\\n\" }\n"},
		"a key":        {"c.toml", "s", "[s]\na = {x = 1}\nb = {x = 2, y = [\n 1, # one\n]}\n", "[s]\na = {x = 1}\n", "[s.b]\nx = 2\ny = [1]\n"},
		"YAML":         {"c.yaml", "s", "s:\n  a:\n    x: 1\n  # about b\n  b:\n    - 1\n\n  c: 3\nd: 4\n", "s:\n  a:\n    x: 1\n  # about b\n\n  c: 3\nd: 4\n", "s:\n  b: [1]\n"},
		"all of YAML":  {"c.yaml", "s", "s: # mine\n  b: 1\nd: 4\n", "s: {} # mine\nd: 4\n", "s:\n  b: 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := newDocument(tt.file, []byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			value, err := text.cut(tt.key, "b")
			if err != nil {
				if tt.elsewhere == "" && string(text.bytes()) == tt.before {
					return // refused, and nothing changed
				}
				t.Fatal(err)
			}
			if got := string(text.bytes()); got != tt.after {
				t.Errorf("left\n%s\nwant\n%s", got, tt.after)
			}
			other, err := newDocument(tt.file, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := other.set(value, tt.key, "b"); err != nil {
				t.Fatal(err)
			}
			if got := string(other.bytes()); got != tt.elsewhere {
				t.Errorf("elsewhere\n%s\nwant\n%s", got, tt.elsewhere)
			}
		})
	}
}

func TestSetReplacesOneValue(t *testing.T) {
	for name, tt := range map[string]struct{ file, before, after string }{
		"JSON":           {"c.json", "{\"s\": {\"b\": {\"command\": /* old */ \"/a\", \"x\": 1}}} // end", "{\"s\": {\"b\": {\"command\": /* old */ \"/new\", \"x\": 1}}} // end"},
		"new in JSON":    {"c.json", "{\"s\": {\"b\": {\n  \"x\": 1\n}}}", "{\"s\": {\"b\": {\n  \"x\": 1,\n  \"command\": \"/new\"\n}}}"},
		"TOML":           {"c.toml", "[s.b]\n  command = '/a' # old\nx = 1\n", "[s.b]\n  command = \"/new\" # old\nx = 1\n"},
		"dotted":         {"c.toml", "s.b.command = '''\na''' # old", "s.b.command = \"/new\" # old"},
		"new in TOML":    {"c.toml", "[s.b]\nx = 1\n\n[t]\n", "[s.b]\nx = 1\ncommand = \"/new\"\n\n[t]\n"},
		"YAML":           {"c.yaml", "s:\n  b:\n    command: /a\n    x: 1\n", "s:\n  b:\n    command: \"/new\"\n    x: 1\n"},
		"with a comment": {"c.yaml", "s:\n  b:\n    command: /a # old\n    x: 1\n", "s:\n  b:\n    command: \"/new\" # old\n    x: 1\n"},
		"several lines":  {"c.yaml", "s:\n  b:\n    command: >\n      /a\n\n    x: 1\n", "s:\n  b:\n    command: \"/new\"\n\n    x: 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := newDocument(tt.file, []byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			if err := text.set([]byte(`"/new"`), "s", "b", "command"); err != nil {
				t.Fatal(err)
			}
			if got := string(text.bytes()); got != tt.after {
				t.Errorf("got\n%s\nwant\n%s", got, tt.after)
			}
		})
	}
}

// TestNameThatIsThereTwiceIsRefused wherever it is in the way of a change: readers do not
// agree on which of the two counts.
func TestNameThatIsThereTwiceIsRefused(t *testing.T) {
	const before = `{"p": {"s": {"b": {"command": "/a", "command": "/b"}, "c": 1, "c": 2}}}`
	text, err := newDocument("c.json", []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	_, cut := text.cut("p", "s", "c")
	for _, err := range []error{cut, text.set([]byte(`"/new"`), "p", "s", "b", "command"), text.set([]byte(`1`), "p", "s", "d")} {
		if err == nil || !strings.Contains(err.Error(), " twice") {
			t.Errorf("got %v", err)
		}
	}
	if got := string(text.bytes()); got != before {
		t.Errorf("it was changed: %s", got)
	}
}

// TestWhatCannotBeChangedSafelyIsRefused: and the text stays as it was.
func TestWhatCannotBeChangedSafelyIsRefused(t *testing.T) {
	for name, tt := range map[string]struct{ file, before, want string }{
		"broken JSON":       {"c.json", `{"s": {`, "is not JSON"},
		"a list":            {"c.json", `[]`, "not a JSON object"},
		"the key is a list": {"c.json", `{"s": []}`, "not an object"},
		"a name twice":      {"c.json", `{"s": {"a": 1, "a": 2}}`, `"a" twice`},
		"twice elsewhere":   {"c.json", `{"x": {"a": 1, "a": 2}, "s": {}}`, `"a" twice`},
		"twice in YAML":     {"c.yaml", "s:\n  a: 1\n  a: 2\n", "is not YAML"},
		"broken TOML":       {"c.toml", "a = ", "is not TOML"},
		"an inline table":   {"c.toml", "s = { a = {} }\n", "write it as a table"},
		"broken YAML":       {"c.yaml", "a: [", "is not YAML"},
		"YAML in braces":    {"c.yaml", "s: {a: {x: 1}}\n", "in braces"},
		"all in braces":     {"c.yaml", "{a: {x: 1}}\n", "in braces"},
		"a YAML list":       {"c.yaml", "s:\n- a\n", "not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := newDocument(tt.file, []byte(tt.before))
			if err == nil {
				err = text.set([]byte(entry), "s", "toolcell")
				if got := text.bytes(); string(got) != tt.before {
					t.Errorf("it was changed: %s", got)
				}
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	text, err := newDocument("c.json", []byte(`{"s": {}}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := text.cut("s", "b"); !errors.Is(err, errAbsent) {
		t.Errorf("cutting what is not there: %v", err)
	}
}

// FuzzDocument: whatever the file is, a change is made and passes the check
// within, or it is refused and changes nothing.
func FuzzDocument(f *testing.F) {
	for _, name := range []string{"c.json", "c.toml", "c.yaml"} {
		f.Add(name, []byte("{\"s\": {\"a\": 1 /* x */, // y\n}}"))
		f.Add(name, []byte("# x\n[s.a]\nb = '''\n'''\n[s]\nc.d = {}\n"))
		f.Add(name, []byte("s:\n  a: |\n    x\n  # y\n  b: {}\n"))
	}
	f.Fuzz(func(t *testing.T, file string, data []byte) {
		text, err := newDocument(file, data)
		if err != nil || len(data) > 1<<16 {
			return
		}
		if !bytes.Equal(text.bytes(), data) {
			t.Fatalf("reading changed %q to %q", data, text.bytes())
		}
		if text.set([]byte(entry), "s", "toolcell") != nil {
			if !bytes.Equal(text.bytes(), data) {
				t.Fatalf("a refused change changed %q to %q", data, text.bytes())
			}
			return
		}
		set := text.bytes()
		if _, err := text.cut("s", "toolcell"); err != nil && !bytes.Equal(text.bytes(), set) {
			t.Fatalf("a refused cut changed %q to %q: %v", set, text.bytes(), err)
		}
	})
}

// TestCutUndoesSet to the byte, where the object was there and over lines.
func TestCutUndoesSet(t *testing.T) {
	for file, texts := range map[string][]string{
		"c.json": {
			"{\n\t\"s\": {\n\t\t\"a\": 1, // one\n\t\t\"b\": {}\n\t\t// \"old\": 2\n\t}\n}", "{\"s\": {\n  \"a\": 1,\n  },\n}\n", "{\r\n  \"s\": {\r\n    \"a\": 1\r\n  }\r\n}\r\n", "{\n  \"s\": {}\n}\n",
		},
		"c.toml": {"a = 1\n", "[s.a]\nx = '''\n[b]'''\n", "# all\n[s]\nx = { y = 1 }\n# end\n"},
		"c.yaml": {"s:\n    a: 1\n    # in a\nb: 2\n", "s:\n  a: |\n    x\n\nb: 1\n"},
	} {
		for _, before := range texts {
			text, err := newDocument(file, []byte(before))
			if err != nil {
				t.Fatal(err)
			}
			if err := text.set([]byte(entry), "s", "toolcell"); err != nil {
				t.Fatalf("%s: %v", before, err)
			}
			set := string(text.bytes())
			if _, err := text.cut("s", "toolcell"); err != nil {
				t.Fatalf("%s: %v", set, err)
			}
			if got := string(text.bytes()); got != before {
				t.Errorf("%q became %q and then %q", before, set, got)
			}
		}
	}
}
