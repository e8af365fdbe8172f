package signature

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// publicTools are the tools of public servers, by server, as they list them.
func publicTools(t testing.TB) map[string][]testTool {
	t.Helper()
	files, err := filepath.Glob("../mcptest/testdata/servers/*.json")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d lists, %v", len(files), err)
	}
	all := map[string][]testTool{}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []testTool }
		if err := json.Unmarshal(body, &list); err != nil || len(list.Tools) == 0 {
			t.Fatalf("%s: %d tools, %v", file, len(list.Tools), err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".json")] = named(list.Tools)
	}
	return all
}

// TestToolsOfPublicServersArePython: the signatures of them all compile.
//
//test:alone
func TestToolsOfPublicServersArePython(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads the tools of many servers")
	}
	servers := publicTools(t)
	checkedByPython(t, servers)
	for server, tools := range servers {
		for _, tool := range tools {
			t.Run(server+"/"+tool.Name, func(t *testing.T) { checkSignature(t, tool) })
		}
	}
}

// A judge says by the specification whether a schema allows arguments.
type judge struct {
	*jsonschema.Schema
	schema any // decoded
}

// newJudge returns nil for a schema that the validator does not take.
func newJudge(raw json.RawMessage) *judge {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is loaded
	if c.AddResource("tool:schema", schema) != nil {
		return nil
	}
	compiled, err := c.Compile("tool:schema")
	if err != nil {
		return nil
	}
	j := &judge{Schema: compiled}
	_ = json.Unmarshal(raw, &j.schema)
	return j
}

func (j *judge) allows(value any) bool { return j.Validate(value) == nil }

// A maker makes values, many of which a schema allows.
type maker struct {
	*rand.Rand
	root any
}

func (m *maker) pick(list []any) any { return list[m.IntN(len(list))] }

// value makes one for a schema.
func (m *maker) value(schema any, depth int) any {
	s, ok := schema.(map[string]any)
	if !ok || depth > 6 || m.IntN(12) == 0 {
		return m.anything(depth)
	}
	if ref, ok := s["$ref"].(string); ok {
		return m.value(m.resolve(ref), depth+1)
	}
	if c, ok := s["const"]; ok {
		return c
	}
	if values, ok := s["enum"].([]any); ok && len(values) > 0 {
		return m.pick(values)
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 && m.IntN(4) > 0 {
			if made, isMap := m.value(m.pick(list), depth+1).(map[string]any); isMap {
				if own, isMap := m.ofType(s, "object", depth).(map[string]any); isMap {
					made = maps.Clone(made) // it may be a const
					maps.Copy(made, own)
				}
				return made
			}
			return m.value(m.pick(list), depth+1)
		}
	}
	if d, ok := s["default"]; ok && m.IntN(4) == 0 {
		return d
	}
	switch typ := s["type"].(type) {
	case string:
		return m.ofType(s, typ, depth)
	case []any:
		if len(typ) > 0 {
			name, _ := m.pick(typ).(string)
			return m.ofType(s, name, depth)
		}
	}
	if s["properties"] != nil || s["required"] != nil {
		return m.ofType(s, "object", depth)
	}
	return m.anything(depth)
}

func (m *maker) ofType(s map[string]any, typ string, depth int) any {
	number := func(key string, otherwise float64) float64 {
		if n, ok := s[key].(float64); ok {
			return n
		}
		return otherwise
	}
	switch typ {
	case "string":
		return strings.Repeat("x", int(min(max(number("minLength", float64(m.IntN(4))), 0), 100)))
	case "integer":
		return float64(int(number("minimum", number("exclusiveMinimum", 0)+1)) + m.IntN(3))
	case "number":
		return number("minimum", number("exclusiveMinimum", 0)) + 0.5
	case "boolean":
		return m.IntN(2) == 0
	case "array":
		list := []any{}
		for range int(min(max(number("minItems", float64(m.IntN(3))), 0), 5)) {
			list = append(list, m.value(s["items"], depth+1))
		}
		return list
	case "object":
		made := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		needed, _ := s["required"].([]any)
		for name, property := range properties {
			if slices.Contains(needed, any(name)) && m.IntN(15) > 0 || m.IntN(3) == 0 {
				made[name] = m.value(property, depth+1)
			}
		}
		if depth > 0 && m.IntN(4) == 0 {
			made["other"] = m.value(s["additionalProperties"], depth+1)
		}
		return made
	}
	return nil
}

func (m *maker) anything(depth int) any {
	all := []any{nil, true, false, 0.0, 1.0, -1.0, 2.5, 1e20, "", "x", "number", []any{}, map[string]any{}}
	if depth < 4 && m.IntN(3) == 0 {
		return m.pick([]any{[]any{m.anything(depth + 1)}, map[string]any{"a": m.anything(depth + 1), "kind": m.anything(depth + 1)}})
	}
	return m.pick(all)
}

func (m *maker) resolve(ref string) any {
	at := m.root
	for part := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if object, ok := at.(map[string]any); ok && part != "" {
			at = object[strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")]
		}
	}
	return at
}

// judged binds arguments that the judge allows, and reports how many it did.
func judged(t *testing.T, raw json.RawMessage, seed uint64, tries int) (allowed int) {
	t.Helper()
	j := newJudge(raw)
	if j == nil {
		return 0
	}
	sig := New(raw, nil)
	m := &maker{rand.New(rand.NewPCG(seed, 1)), j.schema}
	for range tries {
		args, ok := m.value(j.schema, 0).(map[string]any)
		if !ok {
			continue
		}
		for i := range sig.Parameters {
			if sig.Parameters[i].Required && m.IntN(30) > 0 && args[sig.Parameters[i].Name] == nil {
				if _, given := args[sig.Parameters[i].Name]; !given {
					args[sig.Parameters[i].Name] = m.anything(0)
				}
			}
		}
		if !sig.Extra { // names that are not documented are taken for slips, whatever the schema says
			maps.DeleteFunc(args, func(name string, _ any) bool { return sig.indexOf(name) < 0 })
		}
		if !j.allows(args) {
			continue
		}
		allowed++
		given, _ := json.Marshal(args)
		arguments, err := ParseArguments(given)
		if err != nil {
			t.Fatal(err)
		}
		bound, err := sig.Bind("f", nil, arguments)
		if err == nil {
			_, err = sig.Fit("f", given)
		}
		if err != nil {
			t.Errorf("refused though right: %v\narguments %s\nschema %.3000s", err, given, raw)
			return allowed
		}
		var sent map[string]any
		if err := json.Unmarshal(bound, &sent); err != nil {
			t.Fatal(err)
		}
		for name, value := range args {
			// None leaves out what may be left out, and then the server's default counts.
			if got := sent[name]; fmt.Sprint(got) != fmt.Sprint(value) && value != nil {
				t.Errorf("%s became %s", given, bound)
			}
		}
	}
	return allowed
}

//test:alone
func TestNoFalseRefusalOfToolsOfPublicServers(t *testing.T) {
	if testing.Short() {
		t.Skip("it checks thousands of arguments")
	}
	tools, tried, allowed := 0, 0, 0
	for server, list := range publicTools(t) {
		for i, tool := range list {
			t.Run(server+"/"+tool.Name, func(t *testing.T) {
				tools++
				if n := judged(t, tool.InputSchema, uint64(i), 20); n > 0 {
					tried++
					allowed += n
				}
			})
		}
	}
	t.Logf("%d calls of %d tools of %d were allowed", allowed, tried, tools)
	if tried < tools*9/10 || allowed < 5*tools {
		t.Errorf("only %d calls of %d tools of %d could be tried", allowed, tried, tools)
	}
}

// randomSchema makes a schema of any keywords.
func randomSchema(m *rand.Rand, depth int) any {
	one := func(of ...any) any { return of[m.IntN(len(of))] }
	if depth > 3 || m.IntN(10) == 0 {
		return one(true, map[string]any{}, map[string]any{"type": "string"}, map[string]any{"type": "integer"}, map[string]any{"$ref": "#/$defs/d"}, map[string]any{"$ref": "#"})
	}
	inner := func() any { return randomSchema(m, depth+1) }
	several := func() []any {
		var list []any
		for range 1 + m.IntN(3) {
			list = append(list, inner())
		}
		return list
	}
	members := func() map[string]any {
		all := map[string]any{}
		for range 1 + m.IntN(3) {
			all[one("a", "b", "kind", "value").(string)] = inner()
		}
		return all
	}
	s := map[string]any{}
	for range 1 + m.IntN(4) {
		switch m.IntN(20) {
		case 0, 1, 2:
			s["type"] = one("string", "integer", "number", "boolean", "array", "object", "null", []any{"string", "null"}, []any{"integer", "object"})
		case 3, 4:
			s["properties"] = members()
		case 5:
			s["required"] = one([]any{"a"}, []any{"a", "b"}, []any{"kind"}, []any{})
		case 6:
			s["enum"] = one([]any{"x", 1.0, nil}, []any{true}, []any{"number", "text"}, []any{map[string]any{"a": 1.0}, []any{}})
		case 7:
			s["const"] = one("x", 1.0, nil, "number", []any{}, false)
		case 8, 9:
			s["anyOf"] = several()
		case 10, 11:
			s["oneOf"] = several()
		case 12:
			s["allOf"] = several()
		case 13:
			s["items"] = inner()
		case 14:
			s["prefixItems"] = several()
		case 15:
			s["additionalProperties"] = one(true, false, inner())
		case 16:
			s["default"] = one(nil, "x", 1.0, map[string]any{})
		case 17:
			s[one("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxItems", "minProperties").(string)] = one(0.0, 1.0, 2.0)
		case 18:
			s[one("not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties").(string)] = inner()
		case 19:
			s["$ref"] = one("#/$defs/d", "#", "#/properties/a", "#x")
		}
	}
	return s
}

// TestNoFalseRefusalOfRandomSchemas, with values that a validator allows.
//
//test:alone
func TestNoFalseRefusalOfRandomSchemas(t *testing.T) {
	schemas := 4000
	if testing.Short() {
		schemas = 250
	}
	allowed := 0
	for seed := range uint64(schemas) {
		m := rand.New(rand.NewPCG(seed, 2))
		s := map[string]any{"properties": map[string]any{"a": randomSchema(m, 1), "kind": randomSchema(m, 1)}, "$defs": map[string]any{"d": randomSchema(m, 2)}}
		if more, ok := randomSchema(m, 0).(map[string]any); ok {
			for key, value := range more {
				if key != "type" && key != "enum" && key != "const" && key != "$ref" {
					s[key] = value
				}
			}
		}
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		checkSignature(t, testTool{Name: "f", Alias: "f", InputSchema: raw, OutputSchema: raw})
		allowed += judged(t, raw, seed, 30)
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, raw)
		}
	}
	if allowed < schemas {
		t.Errorf("only %d calls of %d schemas could be tried", allowed, schemas)
	}
	t.Logf("%d calls of %d schemas were allowed", allowed, schemas)
}
