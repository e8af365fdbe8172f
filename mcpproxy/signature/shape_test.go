package signature

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestShapeOfOutputSchemas(t *testing.T) {
	longest := strings.Repeat("n", maxParameterName)
	for schema, want := range map[string]string{
		``:                  `null`,
		`[]`:                `null`,
		`{}`:                `null`,
		`{"type":"object"}`: `{}`,
		`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"},"f":{"type":"number"},"b":{"type":"boolean"}}}`:                                                                           `{"z":"str","a":"int","f":"float","b":"bool"}`,
		`{"properties":{"tags":{"items":{"type":["null","string"]}},"none":{"type":"null"}}}`:                                                                                                                  `{"tags":["str"],"none":null}`,
		`{"type":"object","properties":{"u":{"$ref":"#/$defs/User"}},"$defs":{"User":{"anyOf":[{"type":"null"},{"type":"object","properties":{"id":{"enum":[1]},"kind":{"const":"x"},"r":{"enum":[1.5]}}}]}}}`: `{"u":{"id":"int","kind":"str","r":"float"}}`,
		`{"type":"object","properties":{"u":{"$ref":"https://example.com/x"}}}`:                                                                                                                                `{"u":null}`,
		`{"anyOf":[{"$ref":"#"}]}`:                                                                  `null`,
		`{"properties":{"n":{"type":"number","enum":[1,2]}}}`:                                       `{"n":"float"}`,
		deep(`{"properties":{"a":`, `{"type":"string"}`, `}}`, maxShapeDepth):                       deep(`{"a":`, `"str"`, `}`, maxShapeDepth),
		deep(`{"properties":{"a":`, `{"type":"string"}`, `}}`, maxShapeDepth+1):                     deep(`{"a":`, `{}`, `}`, maxShapeDepth),
		`{"properties":{"` + longest + `":{"type":"string"},"n` + longest + `":{"type":"string"}}}`: `{"` + longest + `":"str"}`,
	} {
		if got := string(Shape(json.RawMessage(schema))); got != want {
			t.Errorf("%s\nhas the shape %s, want %s", schema, got, want)
		}
	}
}

func TestShapeOfSchemasWithoutEndIsBounded(t *testing.T) {
	var many []string
	for i := range 300 {
		many = append(many, `"p`+strings.Repeat("x", i)+`":{"$ref":"#"}`)
	}
	for _, schema := range []string{
		`{"type":"object","properties":{"next":{"$ref":"#"}}}`,
		`{"type":"array","items":{"$ref":"#"}}`,
		`{"type":"object","properties":{` + strings.Join(many, ",") + `}}`,
		`{"anyOf":[{"$ref":"#"},{"$ref":"#"},{"$ref":"#"}]}`,
	} {
		got := Shape(json.RawMessage(schema))
		if len(got) > 20_000 || !json.Valid(got) || strings.Count(string(got), ":") > maxShapeMembers {
			t.Errorf("%.60s has a shape of %d bytes: %.300s", schema, len(got), got)
		}
	}
}

func TestExceptedValuesAreNotChecked(t *testing.T) {
	sig := New(json.RawMessage(`{"type":"object","properties":{"id":{"type":"integer"},"n":{"type":"integer"}}}`), nil)
	except := sig.Except(func(v json.RawMessage) bool { return string(v) == `"any"` })
	if _, err := except.Bind("f", []json.RawMessage{[]byte(`"any"`)}, nil); err != nil {
		t.Error(err)
	}
	if _, err := except.Bind("f", []json.RawMessage{[]byte(`"any"`), []byte(`"other"`)}, nil); err == nil {
		t.Error("a value that is not excepted is not checked")
	}
	if _, err := sig.Bind("f", []json.RawMessage{[]byte(`"any"`)}, nil); err == nil {
		t.Error("the signature itself has changed")
	}
}
