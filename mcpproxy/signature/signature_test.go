package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer"
	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/rawjson"
)

// A testTool is a tool as servers define it.
type testTool struct {
	Name, Alias, Description  string
	InputSchema, OutputSchema json.RawMessage
}

// signed reads a signature from an input schema.
func signed(input string) *Signature {
	return New(json.RawMessage(input), nil)
}

// property makes the schema of an object with one needed property, x.
func withX(schema string) string {
	return `{"type":"object","properties":{"x":` + schema + `},"required":["x"]}`
}

// within makes the schema of a list of itself, which has a name.
func within(name string) string {
	return fmt.Sprintf(`{"$ref":"#/properties/x/$defs/%s","$defs":{%[1]q:{"items":{"$ref":"#/properties/x/$defs/%[1]s"}}}}`, name)
}

func TestSignatureSaysTypesAsPythonDoes(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string"}`:  "str",
		`{"type":"integer"}`: "int", `{"type":"number"}`: "float", `{"type":"boolean"}`: "bool", `{"type":"null"}`: "None",
		`{}`: "Any", `true`: "Any", `5`: "Any", `{"type":"file"}`: "Any", `{"description":"x"}`: "Any",
		`{"type":"array"}`:                                                                               "list",
		`{"type":"array","items":{"type":"string"}}`:                                                     "list[str]",
		`{"items":{"type":"array","items":{"type":"integer"}}}`:                                          "list[list[int]]",
		`{"type":"array","items":true}`:                                                                  "list",
		`{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`:                          "list[str | int]",
		`{"type":"object"}`:                                                                              "dict",
		`{"type":"object","additionalProperties":{"type":"integer"}}`:                                    "dict[str, int]",
		`{"type":"object","additionalProperties":true}`:                                                  "dict",
		`{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["a"]}`: `{"b"?: str, "a": int}`,
		`{"enum":["open","closed"]}`:                                                                     `Literal["open", "closed"]`,
		`{"type":"string","enum":["a",null]}`:                                                            `Literal["a"] | None`,
		`{"enum":[1,2,true]}`:                                                                            "Literal[1, 2, True]",
		`{"type":"number","enum":[0.5,1]}`:                                                               "float",
		`{"const":"fixed"}`:                                                                              `Literal["fixed"]`,
		`{"const":null}`:                                                                                 "None",
		`{"type":["string","null"]}`:                                                                     "str | None",
		`{"type":["null","integer","string"]}`:                                                           "int | str | None",
		`{"type":"string","nullable":true}`:                                                              "str | None",
		`{"anyOf":[{"type":"null"},{"type":"string"}]}`:                                                  "str | None",
		`{"oneOf":[{"type":"string"},{"type":"string"}]}`:                                                "str",
		`{"anyOf":[{"type":"string"},{"anyOf":[{"type":"integer"},{"type":"null"}]}]}`:                   "str | int | None",
		`{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`:     `{"a"?: str}`,
		`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"integer"}}}]}`: `{"a"?: str, "b"?: int}`,
		`{"enum":["say \"hi\"\n","\u2028","\ud83d\ude00<&>\\"]}`:                                                     `Literal["say \"hi\"\n", "\u2028", "😀<&>\\"]`,
		`{"type":"string","enum":["` + strings.Repeat("x", 100) + `"]}`:                                              "str",
		within("tree-node_2"): "list[TreeNode2]",
		within("größe"):       "list[GrE]",
		within("2nd"):         "list[Nd]",
		within("λ"):           "list[Node]",
		within("none"):        "list[Node]",
	} {
		s := signed(withX(schema))
		if got := s.Parameters[0].Text; got != want {
			t.Errorf("%s is %s, want %s", schema, got, want)
		}
	}
}

func TestSignatureOrdersParametersAndKeepsNames(t *testing.T) {
	for _, tt := range []struct{ name, schema, want string }{
		{
			"required first, in the order of the schema",
			`{"type":"object","properties":{"z":{"type":"string"},"b":{"type":"integer","default":3},"a":{"type":"string"},"c":{"type":"boolean"}},"required":["a","z"]}`,
			"f(z: str, a: str, b: int = 3, c: bool = None)",
		},
		{
			"defaults are Python's",
			`{"properties":{"a":{"default":null},"b":{"type":"boolean","default":true},"c":{"type":"array","default":["x",1]},"d":{"type":"object","default":{"k":false}},"e":{"type":"string","default":"` + strings.Repeat("x", 100) + `"}}}`,
			`f(a: Any = None, b: bool = True, c: list = ["x", 1], d: dict = {"k": False}, e: str = ...)`,
		},
		{"what has a default is not needed", `{"properties":{"a":{"type":"string","default":"info"},"b":{"type":"string"}},"required":["a","b"]}`, `f(b: str, a: str = "info")`},
		{
			"names that are none in Python",
			`{"properties":{"class":{},"my-arg":{},"2nd":{},"my_arg":{},"a.b":{},"a b":{},"":{},"😀":{},"größe":{},"__class__":{}},"required":["class"]}`,
			"f(class_: Any, my_arg_2: Any = None, _2nd: Any = None, my_arg: Any = None, a_b: Any = None, a_b_2: Any = None, arg: Any = None, arg_2: Any = None, größe: Any = None, __class__: Any = None)",
		},
		{"required but not described", `{"properties":{"a":{"type":"string"}},"required":["b",5]}`, "f(b: Any, a: str = None)"},
		{"no parameters", `{"type":"object","properties":{},"additionalProperties":false}`, "f()"},
		{"none are described", `{"type":"object"}`, "f(**more)"},
		{"others are allowed", `{"properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}`, "f(a: str = None, **more)"},
		{"others by pattern", `{"properties":{"a":{"type":"string"}},"patternProperties":{"^x":{}}}`, "f(a: str = None, **more)"},
		{"a reference", `{"$ref":"#/$defs/In","$defs":{"In":{"properties":{"a":{"$ref":"#/definitions/T"}},"required":["a"]}},"definitions":{"T":{"type":"string"}}}`, "f(a: str)"},
		{"pointers with escapes and indexes", `{"properties":{"a":{"$ref":"#/x/0/b~1c~0d"}},"x":[{"b/c~d":{"type":"integer"}}]}`, "f(a: int = None)"},
		{
			"one of several forms",
			`{"oneOf":[{"properties":{"kind":{"const":"a"},"id":{"type":"string"}},"required":["kind","id"]},{"properties":{"kind":{"const":"b"},"n":{"type":"integer"}},"required":["kind","n"]}]}`,
			`f(kind: Literal["a"], id: str = None, n: int = None)`,
		},
		{"all of several parts", `{"properties":{"a":{"type":"string"}},"allOf":[{"properties":{"b":{"type":"integer"}},"required":["b"]}]}`, "f(b: int, a: str = None)"},
		{"the last of two of one name", `{"properties":{"a":{"type":"string"},"b":{},"a":{"type":"integer"}}}`, "f(a: int = None, b: Any = None)"},
		{"as long a default as is shown", `{"properties":{"a":{"default":"` + strings.Repeat("x", shownLiteral-2) + `"}}}`, `f(a: Any = "` + strings.Repeat("x", shownLiteral-2) + `")`},
		{"a longer default", `{"properties":{"a":{"default":"` + strings.Repeat("x", shownLiteral-1) + `"}}}`, "f(a: Any = ...)"},
		{"as large a schema as is read", padded(maxSchemaBytes, `{"properties":{"a":{}}}`), "f(a: Any = None)"},
		{"a larger schema", padded(maxSchemaBytes+1, `{"properties":{"a":{}}}`), "f(**more)"},
	} {
		if got := signed(tt.schema).Line("f", 1000); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

func TestSignatureSaysWhatIsReturned(t *testing.T) {
	for output, want := range map[string]string{
		``: "f()", `{"type":"object"}`: "f() -> dict", `5`: "f() -> Any",
		`{"type":"object","properties":{"result":{"type":"array","items":{"type":"string"}}},"required":["result"]}`: "f() -> list[str]",
		`{"type":"object","properties":{"content":{"type":"string"}},"required":["content"]}`:                        `f() -> str | {"content": str}`,
		`{"type":"object","properties":{"total":{"type":"number"}},"required":["total"]}`:                            `f() -> {"total": float}`,
		`{"type":"object","properties":{"result":{"type":"object"}}}`:                                                `f() -> {"result"?: dict}`,
		`{"type":"object","properties":{"result":{"type":"string"},"more":{"type":"string"}}}`:                       `f() -> {"result"?: str, "more"?: str}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#"}}},"required":["a"]}`:                `f() -> {"a": list[Node]}`,
	} {
		s := New(json.RawMessage(`{"properties":{}}`), json.RawMessage(output))
		if got := s.Line("f", 1000); got != want {
			t.Errorf("%s: got %s, want %s", output, got, want)
		}
	}
}

// deep nests a schema n times.
func deep(open, inner, end string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

// hostileSchemas are what a server may send to hurt its reader.
func hostileSchemas() map[string]string {
	many := func(n int, of string) string {
		return strings.TrimSuffix(strings.Repeat(of+",", n), ",")
	}
	numbered := make([]string, 5000)
	for i := range numbered {
		numbered[i] = fmt.Sprintf(`"p%d":{"type":"string"}`, i)
	}
	return map[string]string{
		"nothing": "", "no JSON": "{", "no object": "[1]", "null": "null", "text": `"x"`,
		"a ref to itself":           `{"$ref":"#"}`,
		"refs in a circle":          `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"a tree":                    `{"properties":{"t":{"$ref":"#/$defs/Tree"}},"$defs":{"Tree":{"properties":{"l":{"$ref":"#/$defs/Tree"},"r":{"$ref":"#/$defs/Tree"}}}}}`,
		"refs that multiply":        `{"properties":{"a":{"$ref":"#/$defs/d9"}},"$defs":{` + doubling(30) + `}}`,
		"all of itself, often":      `{"properties":{"a":{}},"required":["a"],"allOf":[` + many(50, `{"$ref":"#"}`) + `]}`,
		"any of itself, often":      `{"properties":{"a":{}},"required":["a"],"anyOf":[` + many(50, `{"$ref":"#"}`) + `],"oneOf":[` + many(50, `{"$ref":"#"}`) + `]}`,
		"parts that multiply":       `{"allOf":[` + many(50, `{"$ref":"#/$defs/d0"}`) + `],"$defs":{` + multiplying(9) + `}}`,
		"large parts, often":        `{"required":[` + numberedNames(15_000) + `],"oneOf":[` + many(50, `{"$ref":"#"}`) + `]}`,
		"refs elsewhere":            `{"properties":{"a":{"$ref":"http://x/y"},"b":{"$ref":"#/nope/1"},"c":{"$ref":"file:///etc/passwd"}}}`,
		"nested objects":            deep(`{"type":"object","properties":{"a":`, `{}`, `}}`, 500),
		"nested arrays":             deep(`{"items":`, `{}`, `}`, 100_000),
		"nested brackets":           deep(`[`, ``, `]`, 1_000_000),
		"nested unions":             deep(`{"anyOf":[{"type":"string"},`, `{}`, `]}`, 90),
		"a megabyte of words":       `{"properties":{"a":{"type":"string","description":"` + strings.Repeat("word ", 200_000) + `"}}}`,
		"a name of a megabyte":      `{"properties":{"` + strings.Repeat("n", 1_000_000) + `":{"type":"string"}}}`,
		"a default of a megabyte":   `{"properties":{"a":{"default":"` + strings.Repeat("n", 1_000_000) + `"}}}`,
		"5,000 parameters":          `{"properties":{` + strings.Join(numbered, ",") + `}}`,
		"5,000 enum values":         `{"properties":{"a":{"enum":[` + many(5000, `"v"`) + `]}}}`,
		"5,000 types":               `{"properties":{"a":{"type":[` + many(5000, `"string"`) + `]}}}`,
		"5,000 branches":            `{"anyOf":[` + many(5000, `{"properties":{"a":{}}}`) + `]}`,
		"200,000 requirements":      `{"required":[` + many(200_000, `"a"`) + `]}`,
		"wrong kinds":               `{"properties":[],"required":{},"type":5,"enum":{},"anyOf":"x","$defs":3,"additionalProperties":"x"}`,
		"wrong kinds inside":        `{"properties":{"a":{"type":[1,null,{}],"enum":5,"items":[[]],"format":[],"default":{},"description":{}}},"required":[null]}`,
		"names that break out":      `{"properties":{"a\"]) -> None: import os #":{"enum":["\"]; import os #"]},"x\ny":{"description":"\"\"\"\nimport os\n\u2028import os"},"__class__":{},"self":{}}}`,
		"numbers without an end":    `{"properties":{"a":{"type":"number","default":1e999999999,"minimum":-1e99999,"maximum":1e99999}}}`,
		"refs in a long row":        `{"properties":{` + chained(6000) + `}}`,
		"10,000 enum values":        `{"properties":{"a":{"enum":[` + numberedNames(10_000) + `]}}}`,
		"a ref to a place it is in": `{"properties":{"a":{"properties":{"b":{"$ref":"#/properties/a"}}}}}`,
		"surrogates and no letters": `{"properties":{"\ud800":{},"\u0000":{},"\u202e":{}}}`,
	}
}

func multiplying(n int) string {
	var defs []string
	for i := range n {
		part := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		defs = append(defs, fmt.Sprintf(`"d%d":{"properties":{"p%d":{}},"allOf":[%s%s]}`, i, i, strings.Repeat(part+",", 40), part))
	}
	return strings.Join(defs, ",")
}

func numberedNames(n int) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"n%d"`, i)
	}
	return strings.Join(names, ",")
}

func doubling(n int) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
	}
	return strings.Join(defs, ",")
}

// chained makes n properties, each of which is the next one.
func chained(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"p%d":{"$ref":"#/properties/p%d"}`, i, i+1))
	}
	return strings.Join(all, ",")
}

func TestSignatureOfHostileSchemasIsBounded(t *testing.T) {
	for name, schema := range hostileSchemas() {
		start := time.Now()
		tool := testTool{Name: "f", Alias: "f", InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)}
		s := checkSignature(t, tool)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s took %v", name, took)
		}
		if line := s.Line("f", 1000); len(line) > 4000 {
			t.Errorf("%s: the line has %d bytes", name, len(line))
		}
	}
}

// checkSignature tries all that a signature is used for, and what holds for
// every one of them.
func checkSignature(t *testing.T, tool testTool) *Signature {
	t.Helper()
	s := New(tool.InputSchema, tool.OutputSchema)
	if body, err := json.Marshal(s); err != nil || len(body) > 8<<20 {
		t.Errorf("%d bytes on the wire, %v", len(body), err)
	}
	if doc := s.Doc("f"); len(doc) > 64<<10 {
		t.Errorf("the doc has %d bytes", len(doc))
	}
	seen := map[string]bool{}
	needs := false
	for i := range s.Parameters {
		p := &s.Parameters[len(s.Parameters)-1-i]
		if seen[p.python()] || !pyname.IsIdentifier(p.python()) || p.Text == "" {
			t.Errorf("parameter %q is called %q of type %q", p.Name, p.python(), p.Text)
		}
		seen[p.python()] = true
		if needs && !p.Required {
			t.Errorf("%q is optional and stands before one that is needed", p.Name)
		}
		needs = needs || p.Required
	}
	named := make([]rawjson.Member, 0, len(s.Parameters))
	for i := range s.Parameters {
		named = append(named, rawjson.Member{Name: s.Parameters[i].python(), Value: json.RawMessage(`{"a":1}`)})
	}
	for _, args := range [][]rawjson.Member{nil, named, {{Name: "no such\nname", Value: json.RawMessage("1")}}} {
		bound, err := s.Bind("f", nil, args)
		var wrong *ArgumentError
		if err == nil && !json.Valid(bound) || err != nil && !errors.As(err, &wrong) {
			t.Errorf("binding gave %.200s, %v", bound, err)
		}
	}
	return s
}

func FuzzSignature(f *testing.F) {
	for _, schema := range hostileSchemas() {
		if len(schema) < 4096 {
			f.Add([]byte(schema), []byte(`{"a":1,"b":null}`))
		}
	}
	for _, file := range realTools(f) {
		for _, tool := range file {
			f.Add([]byte(tool.InputSchema), []byte(`{"path":"x"}`))
		}
	}
	for _, tools := range publicTools(f) {
		for _, tool := range tools {
			f.Add([]byte(tool.InputSchema), []byte(`{"a":1}`))
			if len(tool.OutputSchema) > 0 {
				f.Add([]byte(tool.OutputSchema), []byte(`{}`))
			}
		}
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		judged(t, schema, uint64(len(args)), 5)
		s := checkSignature(t, testTool{Name: "f", Alias: "f", InputSchema: schema, OutputSchema: schema})
		named, err := ParseArguments(args)
		if !json.Valid(args) {
			return // it must not panic, that is all
		}
		var members map[string]json.RawMessage
		twice := err != nil && strings.HasSuffix(err.Error(), " is there twice")
		if json.Unmarshal(args, &members) == nil && !twice && (err != nil || len(named) != len(members)) && len(members) <= maxArguments {
			t.Errorf("%s gave %v, %v", args, named, err)
		}
		if list, err := ParseList(args); err == nil && len(list) > len(args) {
			t.Errorf("%s gave %d items", args, len(list))
		}
		if err == nil {
			if bound, err := s.Bind("f", []json.RawMessage{json.RawMessage(`{}`)}, named); err == nil && !json.Valid(bound) {
				t.Errorf("binding %s gave %s", args, bound)
			}
		}
	})
}

// realTools are the tools of public servers, by server.
func realTools(t testing.TB) map[string][]testTool {
	t.Helper()
	files, err := filepath.Glob("testdata/signatures/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	all := map[string][]testTool{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var tools []testTool
		if err := json.Unmarshal(body, &tools); err != nil {
			t.Fatal(err)
		}
		taken := map[string]bool{}
		for i := range tools {
			tools[i].Alias = pyname.Unique(pyname.Identifier(tools[i].Name), "tool", taken)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = tools
	}
	return all
}

// TestSignatureCostsFewerTokensThanTheSchema measures what a model reads about
// the tools of real servers besides their descriptions: signatures, or names
// and schemas. The signatures have the return types too, which the input
// schemas have not.
func TestSignatureCostsFewerTokensThanTheSchema(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	count := func(text string) int {
		n, err := codec.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Logf("%-20s %6s %12s %8s %10s", "server", "tools", "descriptions", "schemas", "signatures")
	sumSchema, sumSignature := 0, 0
	for _, name := range slices.Sorted(mapKeys(realTools(t))) {
		tools := realTools(t)[name]
		schema, signature, descriptions := 0, 0, 0
		for _, tool := range tools {
			var compact any
			if err := json.Unmarshal(tool.InputSchema, &compact); err != nil {
				t.Fatal(err)
			}
			body, _ := json.Marshal(compact)
			schema += count(tool.Name + string(body))
			signature += count(New(tool.InputSchema, tool.OutputSchema).Doc(tool.Alias))
			descriptions += count(tool.Description)
		}
		t.Logf("%-20s %6d %12d %8d %10d", name, len(tools), descriptions, schema, signature)
		if signature > schema {
			t.Errorf("%s: the signatures cost %d tokens, the schemas %d", name, signature, schema)
		}
		sumSchema, sumSignature = sumSchema+schema, sumSignature+signature
	}
	t.Logf("%-20s %6s %12s %8d %10d", "together", "", "", sumSchema, sumSignature)
	if sumSignature*10 > sumSchema*7 {
		t.Errorf("the signatures cost %d tokens, more than 0.7 of the schemas' %d", sumSignature, sumSchema)
	}
}

// TestBriefSignatureIsShort is about lists of many tools: what must be given comes
// first, and the rest is bounded whatever a server sends.
func TestBriefSignatureIsShort(t *testing.T) {
	long := strings.Repeat("x", 200)
	var many, hostile []string
	for i := range 40 {
		many = append(many, fmt.Sprintf(`"p%02d":{"type":"string"}`, i))
		hostile = append(hostile, fmt.Sprintf(`"%s%02d":{"enum":["%s","%s"],"default":"%s"}`, long, i, long, long+"y", long))
	}
	for schema, want := range map[string]string{
		issueSchema: `f(owner: str, repo: str, title: str, body: str = None, state: Literal["open", "closed"] = None, limit: int = 30, from_: str = None, milestone: int | None = None)`,
		`{"properties":{"filter":{"type":"object","properties":{"labels":{"type":"array","items":{"type":"string"}},"assignee":{"type":"string"},"milestone":{}}}},"required":["filter"]}`: "f(filter: dict)",
		`{"properties":{},"additionalProperties":false}`:                      "f()",
		`{"properties":{"text":{"type":"string","default":"` + long + `"}}}`:  "f(text: str = ...)",
		`{"properties":{` + strings.Join(many, ",") + `},"required":["p39"]}`: "f(p39: str, p00: str = None, p01: str = None, p02: str = None, p03: str = None, p04: str = None, p05: str = None, p06: str = None, p07: str = None, p08: str = None, … and 30 more)",
	} {
		if got := signed(schema).Brief("f"); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", schema, got, want)
		}
	}
	if got := signed(`{"properties":{` + strings.Join(hostile, ",") + `}}`).Brief("f"); len(got) > 600 {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestSignaturesAreValidPython has Python itself read signatures, those of hostile
// schemas too: what a server says must stay a comment or a string.
func TestSignaturesAreValidPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3: apt-get install python3")
	}
	var text strings.Builder
	add := func(tools []testTool) {
		for _, tool := range tools {
			// A signature alone is to be pasted into a def, except for fields that may be left out.
			if doc := New(tool.InputSchema, tool.OutputSchema).Doc(tool.Alias); !strings.Contains(doc, `"?: `) && !strings.Contains(doc, "…") {
				fmt.Fprintf(&text, "async def %s: ...\n", doc)
			}
		}
	}
	for _, tools := range realTools(t) {
		add(tools)
	}
	for name, schema := range hostileSchemas() {
		add([]testTool{{Name: name, Alias: "f", InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)}})
	}
	c := exec.Command(python, "-c", `
import ast, sys
tree = ast.parse(sys.stdin.buffer.read())
kinds = {type(n).__name__ for n in tree.body}
assert kinds == {"AsyncFunctionDef"}, kinds
assert not any(isinstance(n, ast.Import) for n in ast.walk(tree))`)
	c.Stdin = strings.NewReader(text.String())
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func BenchmarkSignatureOf50Parameters(b *testing.B) {
	var properties, needed []string
	for i := range 50 {
		properties = append(properties, fmt.Sprintf(`"parameter_%d":{"type":"string","description":"What the parameter is for, in some words","enum":["a","b"]}`, i))
		if i%3 == 0 {
			needed = append(needed, fmt.Sprintf(`"parameter_%d"`, i))
		}
	}
	tool := testTool{Name: "f", Alias: "f", InputSchema: json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(needed, ",") + `]}`)}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			New(tool.InputSchema, tool.OutputSchema)
		}
	})
	s := New(tool.InputSchema, tool.OutputSchema)
	b.Run("bind", func(b *testing.B) {
		var args []rawjson.Member
		for i := range s.Parameters {
			args = append(args, rawjson.Member{Name: s.Parameters[i].Name, Value: json.RawMessage(`"a"`)})
		}
		for b.Loop() {
			if _, err := s.Bind("f", nil, args); err != nil {
				b.Fatal(err)
			}
		}
	})
}
