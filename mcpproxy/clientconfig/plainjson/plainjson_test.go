package plainjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig/plainjson"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

func TestTextsBecomeJSONInTheirOrder(t *testing.T) {
	for name, tt := range map[string]struct{ path, text, want string }{
		"JSON as it is":    {"a.json", `{"b":1, "a":9007199254740993}`, `{"b":1,"a":9007199254740993}`},
		"comments":         {"a.json", "{ // one\n\"b\":1, /* two */ \"a\":[2,],\n} // three", `{"b":1,"a":[2]}`},
		"another ending":   {"settings", `{"a":1,}`, `{"a":1}`},
		"TOML":             {"a.toml", "[servers.b]\ncommand = \"c\"\n[servers.a]\nargs = ['1', \"2\"]\n", `{"servers":{"b":{"command":"c"},"a":{"args":["1","2"]}}}`},
		"YAML":             {"a.yaml", "b:\n  - c: yes\n    d: '1'\na: 2\n", `{"b":[{"c":"yes","d":"1"}],"a":2}`},
		"YAML with a link": {"a.yml", "x: &one {c: d}\ny: *one\n", `{"x":{"c":"d"},"y":{"c":"d"}}`},
		"YAML that merges": {
			"a.yaml", "x: &x {c: 1, d: 2}\ny: &y {e: 3}\nz:\n  <<: [*x, *y]\n  d: own\nw: {<<: *x, c: own}\n",
			`{"x":{"c":1,"d":2},"y":{"e":3},"z":{"d":"own","c":1,"e":3},"w":{"c":"own","d":2}}`,
		},
		"YAML of comments": {"a.yaml", "# none yet\n", "null"},
		"values of YAML":   {"a.yaml", "a: ~\nb: 0x10\nc: .inf\nd: 12345678901234567890\na: twice\n", `{"a":null,"b":16,"c":".inf","d":12345678901234567890}`},
	} {
		got, err := plainjson.Convert(tt.path, []byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var plain bytes.Buffer
		if err := json.Compact(&plain, got); err != nil || plain.String() != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestTextsThatCannotBeReadSayWhere, and those that stand for too much are refused.
func TestTextsThatCannotBeReadSayWhere(t *testing.T) {
	const tooMuch = "its aliases stand for too much"
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+p+",", 9) + "*" + p + "]\n"
	}
	for name, tt := range map[string]struct{ path, text, want string }{
		"empty":                         {"a.json", " \n", "is empty"},
		"not JSON":                      {"a.json", "{\n  \"a\": nope\n}", "line 2"},
		"deep JSON":                     {"a.json", strings.Repeat("[", 2000), "nested more than 1000 deep"},
		"not TOML":                      {"a.toml", "a = 1\nb = = 2\n", "line 2"},
		"long dotted key":               {"a.toml", "a" + strings.Repeat(".a", 3000) + " = 1", "TOML"},
		"wide TOML":                     {"a.toml", "a = {" + strings.Repeat("b.c.d = 1,", 10_001) + "}", "has more than 10000 keys"},
		"long TOML":                     {"a.toml", strings.Repeat("#", 2<<20), "is larger than 1 MiB"},
		"not YAML":                      {"a.yaml", "a: 1\n b: [", "YAML"},
		"YAML with keys that are lists": {"a.yaml", "a: 1\n[b]: c\n", "line 2, column 1: a key is not a string"},
		"a bomb of links":               {"a.yaml", bomb, "YAML"},
		"links to many values":          {"a.yaml", "a: &a [x" + strings.Repeat(",x", 999) + "]\nb: [*a" + strings.Repeat(",*a", 249) + "]\n", tooMuch},
		"links to a long text":          {"a.yaml", "a: &a " + strings.Repeat("x", 200_000) + "\nb: [*a" + strings.Repeat(",*a", 99) + "]\n", tooMuch},
		"links that merge nothing":      {"a.yaml", "a: &a {<<: [{}" + strings.Repeat(",{}", 499) + "]}\nb: {<<: [*a" + strings.Repeat(",*a", 499) + "]}\n", tooMuch},
		"deep YAML":                     {"a.yaml", strings.Repeat("[", 3000) + strings.Repeat("]", 3000), "deep"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := plainjson.Convert(tt.path, []byte(tt.text))
			mcptest.WantError(t, err, tt.want)
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}
