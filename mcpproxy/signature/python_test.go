package signature

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/rawjson"
)

// checkPython has Python compile signatures, and call a function of each. Its input is JSON:
// a list of objects of signatures and parameters.
const checkPython = `
import ast, json, sys

def fail(*what):
    print(*[ascii(each)[:400] for each in what])

for each in json.load(sys.stdin):
    for signature in each["signatures"]:
        # A key that may be missing is marked with ?, and where there is no room for all, … says so.
        text = signature.replace('"?: ', '": ')
        try:
            args = ast.parse("def " + text + ": pass").body[0].args
        except Exception as error:
            fail("signature", error, signature)
            continue
        names = [arg.arg for arg in args.args]
        if names != each["parameters"]:
            fail("parameters", names, each["parameters"], signature)
        call = "f(" + ", ".join(name + "=1" for name in names) + ")"
        got = eval(call, {"f": lambda **arguments: list(arguments)})
        if got != names:
            fail("called", got, names)
`

// checkedByPython gives the texts of signatures to Python.
func checkedByPython(t *testing.T, servers map[string][]testTool) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	type checked struct {
		Signatures []string `json:"signatures"`
		Parameters []string `json:"parameters"`
	}
	var all []checked
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		for _, tool := range servers[server] {
			sig := New(tool.InputSchema, tool.OutputSchema)
			c := checked{Parameters: []string{}, Signatures: []string{}}
			for i := range sig.Parameters {
				c.Parameters = append(c.Parameters, sig.Parameters[i].python())
			}
			if len(c.Parameters) <= 255 {
				for _, text := range []string{sig.Doc(tool.Alias), sig.Line(tool.Alias, 1<<20), sig.Brief(tool.Alias)} {
					if !strings.Contains(text, " more parameters\n") && !strings.Contains(text, "… and ") {
						c.Signatures = append(c.Signatures, text)
					}
				}
			}
			all = append(all, c)
		}
	}
	input, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(python, "-c", checkPython)
	c.Stdin = bytes.NewReader(input)
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%.8000s", err, out)
	}
}

// named gives tools their names in code.
func named(tools []testTool) []testTool {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	for i, alias := range (pyname.Scheme{Fallback: "tool", Identifier: pyname.Identifier}).Aliases(names) {
		tools[i].Alias = alias
	}
	return tools
}

// TestWhateverAServerWritesIsPython: names, descriptions, values and formats of any text
// leave signatures valid, and each parameter reaches its property.
//
//test:alone
func TestWhateverAServerWritesIsPython(t *testing.T) {
	texts := []string{
		``, `"""`, `a"""`, `a""`, `a"`, `a\`, `a\"`, `a\\"""`, `"""\`, `""""""`, `'''`, `\`, "a\nb", "a\r\nb", "\x00", "a\x00\"\"\"", "\u202eevil\u202c", "\u2028import os",
		"#", "]); import os #", "{x}", "%s", "\\N{DASH}", `\u0041`, `\x`, "\ufeff", "\x0c", "\x1b[31m", "😀", "日本語", "ünï", "ﬁle", "e\u0301", "ℌ", "ª", "self", "None", "async", "await",
		"print", "more", "arguments", "Literal", "Any", "TypedDict", "NotRequired", "str", "dict", "list", "type", "match", "case", "_", "__", "__debug__", "__class__", "__x", "class",
		"True", "lambda", "f", "x y", "x-y", "x_y", "x.y", "2x", "$ref", "*args", "**more", "a=1", "a: int", "()", "»", strings.Repeat("long ", 300_000), strings.Repeat(`"`, 1000), strings.Repeat(`\`, 1001),
		strings.Repeat("n", 100) + "1", strings.Repeat("n", 100) + "2",
	}
	quoted := func(s string) string {
		raw, _ := json.Marshal(s)
		return string(raw)
	}
	servers := map[string][]testTool{}
	var properties []string
	for i, txt := range texts {
		q := quoted(txt)
		properties = append(properties, q+`:{"type":"string","description":`+q+`}`)
		name := txt[:min(len(txt), 100)]
		servers[fmt.Sprint(i)] = named([]testTool{{
			Name: name, Description: txt,
			InputSchema: json.RawMessage(`{"title":` + q + `,"description":` + q + `,"properties":{` + q + `:{"enum":[` + q + `,null,5],"default":` + q + `,"description":` + q + `,"format":` + q + `,"pattern":` + q +
				`},"o":{"type":"object","title":` + q + `,"properties":{` + q + `:{"const":` + q + `,"description":` + q + `},"self":{"$ref":"#/properties/o"},"list":{"type":"array","items":{"enum":[` + q + `]}}},"required":[` + q + `]},` +
				`"d":{"$ref":` + quoted("#/$defs/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(txt)) + `},"l":{"$ref":"#/$defs/l"}},"$defs":{` + q + `:{"type":"object","properties":{"x":{"type":"integer"}}},` +
				`"l":{"type":"array","items":{"$ref":"#/$defs/l"}}},"additionalProperties":{"type":"string"}}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{` + q + `:{"enum":[` + q + `]},"again":{"$ref":"#"}}}`),
		}})
	}
	all := `{"properties":{` + strings.Join(properties, ",") + `},"additionalProperties":true}`
	servers["all of them"] = named([]testTool{
		{Name: "parameters", InputSchema: json.RawMessage(all)},
		{Name: "fields", InputSchema: json.RawMessage(`{"properties":{"o":{"type":"object","properties":{` + strings.Join(properties[:50], ",") + `}},"p":{"type":"object","properties":{` + strings.Join(properties[50:], ",") + `}}}}`)},
		{Name: "reserved", InputSchema: json.RawMessage(`{"properties":{"Literal":{"$ref":"#/$defs/Literal"},"Any":{"$ref":"#/$defs/Any"}},"$defs":{"Literal":{"properties":{"a":{"enum":["x"]}}},"Any":{"properties":{"b":{}}}}}`)},
	})
	tree := `{"properties":{"t":{"$ref":"#/$defs/Tree"}},"$defs":{"Tree":{"properties":{"v":{"type":"%s"},"l":{"$ref":"#/$defs/Tree"},"down":{"properties":{"up":{"$ref":"#/$defs/Tree"}}}}}}}`
	for i := range 30 {
		servers["a forest"] = append(servers["a forest"], testTool{Name: fmt.Sprintf("t%d", i), InputSchema: []byte(strings.ReplaceAll(tree, `"v"`, fmt.Sprintf(`"v%d"`, i)))})
	}
	named(servers["a forest"])
	servers["trees"] = named([]testTool{
		{Name: "one", InputSchema: fmt.Appendf(nil, tree, "string")},
		{Name: "same", InputSchema: fmt.Appendf(nil, tree, "string")},
		{Name: "other", InputSchema: fmt.Appendf(nil, tree, "integer")},
		{Name: "again", InputSchema: fmt.Appendf(nil, tree, "integer")},
	})
	for name, schema := range hostileSchemas() {
		servers[name] = named([]testTool{{Name: name, Description: name, InputSchema: json.RawMessage(schema), OutputSchema: json.RawMessage(schema)}})
	}
	checkedByPython(t, servers)

	sig := signed(all)
	for i := range sig.Parameters {
		p := &sig.Parameters[i]
		bound, err := sig.Bind("f", nil, []rawjson.Member{{Name: p.python(), Value: json.RawMessage(`"v"`)}})
		var got map[string]string
		if err != nil || json.Unmarshal(bound, &got) != nil || len(got) != 1 || got[p.Name] != "v" {
			t.Errorf("%.100q, which is called %.100q, binds %.100s, %v", p.Name, p.python(), bound, err)
		}
	}
}

func TestOtherArgumentsHaveANameOfTheirOwn(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties":{"more":{"type":"string"}},"additionalProperties":true}`:           "f(more: str = None, **more_2)",
		`{"properties":{"more":{},"more_2":{}},"additionalProperties":true}`:              "f(more: Any = None, more_2: Any = None, **more_3)",
		`{"properties":{"more":{"type":"string"}},"additionalProperties":false}`:          "f(more: str = None)",
		`{"properties":{"a":{"type":"string"}},"additionalProperties":{"type":"string"}}`: "f(a: str = None, **more)",
	} {
		s := signed(schema)
		if got := s.Line("f", 1000); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
		if got := s.Doc("f"); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}
