package signature

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTypesOfSchemasThatSayLittleOrMuch(t *testing.T) {
	for schema, want := range map[string]string{
		`{"nullable":true}`:                                                                      "Any",
		`{"additionalProperties":{"type":"integer"}}`:                                            "dict[str, int]",
		`{"prefixItems":[{"type":"string"}]}`:                                                    "list[str]",
		`{"type":["string",null]}`:                                                               "Any",
		`{"enum":[true,"` + strings.Repeat("x", 100) + `"]}`:                                     "bool | str",
		`{"enum":["a",-1,"` + strings.Repeat("x", 100) + `",false]}`:                             "str | int | bool",
		`{"type":"object","properties":{}}`:                                                      "dict",
		`{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`:            "dict[str, int]",
		`{"type":"object","enum":[{"a":1}]}`:                                                     "dict",
		`{"type":"array","enum":[[1]]}`:                                                          "list",
		`{"anyOf":[{"anyOf":[{"type":"string"},{"type":"null"}]},{"type":"integer"}]}`:           "str | int | None",
		`{"anyOf":[{"type":"string"},{"anyOf":[{"type":"string"},{"type":"integer"}]}]}`:         "str | int",
		`{"anyOf":[{"type":"string","nullable":true},{"type":"string"},{"type":["integer"]}]}`:   "str | int | None",
		`{"type":"array","items":{"anyOf":[{"type":"string"},{"description":"or what it is"}]}}`: "list[str]",
	} {
		if got := signed(withX(schema)).Parameters[0].Text; got != want {
			t.Errorf("%s is %s, want %s", schema, got, want)
		}
	}
}

// TestRunnerIsToldTypesThatPythonHas: it makes types of typing of them. What typing has no
// type for, it knows as text only.
func TestRunnerIsToldTypesThatPythonHas(t *testing.T) {
	letters := func(n int) string { return strings.Repeat("x", n) }
	for schema, want := range map[string]string{
		`{}`: `"Any"`, `{"type":"object"}`: `"dict"`, `{"type":"array"}`: `"list"`, `{"type":"null"}`: `"None"`,
		`{"type":"string"}`: `"str"`, `{"type":"boolean"}`: `"bool"`,
		`{"type":"array","items":{"type":"integer"}}`:                `["list","int"]`,
		`{"type":"object","additionalProperties":{"type":"number"}}`: `["dict","float"]`,
		`{"type":["string","integer","null"]}`:                       `["union","str","int","None"]`,
		`{"oneOf":[{"type":"string"},{"type":"string"}]}`:            `"str"`,
		`{"enum":["a",2,true,null]}`:                                 `["union",["literal","a",2,true],"None"]`,
		`{"enum":[` + listed(shownLiterals, "7") + `]}`:              `["literal",` + listed(shownLiterals, "7") + `]`,
		`{"enum":[` + listed(shownLiterals+1, "7") + `]}`:            ``,
		`{"const":"` + letters(shownLiteral-2) + `"}`:                `["literal","` + letters(shownLiteral-2) + `"]`,
		`{"const":"` + letters(shownLiteral-1) + `"}`:                ``,
		`{"properties":{"a":{}}}`:                                    ``,
		`{"type":"array","items":{"properties":{"a":{}}}}`:           ``,
		`{"anyOf":[{"type":"string"},{"properties":{"a":{}}}]}`:      ``,
		within("node"): ``,
		`{"type":"array","items":{"type":"array","items":{"const":1}}}`: `["list",["list",["literal",1]]]`,
	} {
		sent, err := json.Marshal(signed(withX(schema)))
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Parameters []struct{ Type json.RawMessage }
		}
		if err := json.Unmarshal(sent, &got); err != nil || len(got.Parameters) != 1 {
			t.Fatalf("%s: %s, %v", schema, sent, err)
		}
		if typ := string(got.Parameters[0].Type); typ != want {
			t.Errorf("%s has the type %s, want %s", schema, typ, want)
		}
	}
}

// TestBriefSignatureCutsWhatIsDeepOrLong: what is outside stays.
func TestBriefSignatureCutsWhatIsDeepOrLong(t *testing.T) {
	lists := func(n int) string { return withX(deep(`{"items":`, `{"type":"string"}`, `}`, n)) }
	dicts := func(n int) string { return withX(deep(`{"additionalProperties":`, `{"type":"string"}`, `}`, n)) }
	quoted := func(size int) string { return `"` + strings.Repeat("y", size-len(`""`)) + `"` }
	byDefault := func(value string) string { return `{"properties":{"x":{"type":"string","default":` + value + `}}}` }
	for schema, want := range map[string]string{
		lists(6):                               "f(x: " + deep("list[", "str", "]", 6) + ")",
		lists(7):                               "f(x: " + deep("list[", "list", "]", 6) + ")",
		dicts(3):                               "f(x: " + deep("dict[str, ", "str", "]", 3) + ")",
		dicts(4):                               "f(x: " + deep("dict[str, ", "dict", "]", 3) + ")",
		byDefault(quoted(briefAnnotation)):     "f(x: str = " + quoted(briefAnnotation) + ")",
		byDefault(quoted(briefAnnotation + 1)): "f(x: str = ...)",
	} {
		if got := signed(schema).Brief("f"); got != want {
			t.Errorf("%s is %s, want %s", schema, got, want)
		}
	}
}

// TestTypesTellWhatOneMappingAndNoneMean, as positional arguments.
func TestTypesTellWhatOneMappingAndNoneMean(t *testing.T) {
	for name, tt := range map[string]struct{ schema, positional, want string }{
		"a mapping for a first argument that may be one": {`{"properties":{"a":{"type":["string","object"]},"b":{}}}`, `[{"k":1}]`, `{"a":{"k":1}}`},
		"the arguments, where it may not be one":         {`{"properties":{"a":{"type":["string","array"]},"b":{}}}`, `[{"b":1}]`, `{"b":1}`},
		"None where any value may come":                  {`{"properties":{"a":{}}}`, `[null]`, `{"a":null}`},
		"None where nothing is known of the type":        {`{"properties":{"a":{"$ref":"http://x/y"}}}`, `[null]`, `{"a":null}`},
		"None where only lists may come":                 {`{"properties":{"a":{"type":"array"}}}`, `[null]`, `{}`},
		"None where only objects may come":               {`{"properties":{"a":{"type":"object"}}}`, `[null]`, `{}`},
	} {
		positional, _ := given(t, tt.positional, `{}`)
		if got, err := signed(tt.schema).Bind("f", positional, nil); err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, tt.want)
		}
	}
}
