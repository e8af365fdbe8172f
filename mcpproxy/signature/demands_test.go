package signature

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestDemandsSayWhatAValueHasToBe(t *testing.T) {
	for schema, want := range map[string]string{
		`{"exclusiveMinimum":0}`:                                                     "above 0",
		`{"exclusiveMaximum":0}`:                                                     "below 0",
		`{"exclusiveMinimum":0,"exclusiveMaximum":1}`:                                "above 0, below 1",
		`{"exclusiveMinimum":0,"maximum":100}`:                                       "above 0, at most 100",
		`{"minimum":0,"exclusiveMaximum":1}`:                                         "at least 0, below 1",
		`{"minimum":1,"exclusiveMinimum":0}`:                                         "at least 1",
		`{"minimum":0,"exclusiveMinimum":0}`:                                         "above 0",
		`{"maximum":5,"exclusiveMaximum":9}`:                                         "at most 5",
		`{"minimum":1,"maximum":100}`:                                                "1 to 100",
		`{"minimum":3,"maximum":3}`:                                                  "exactly 3",
		`{"minimum":5,"maximum":2}`:                                                  "at least 5, at most 2",
		`{"minimum":0}`:                                                              "",
		`{"minimum":-5}`:                                                             "at least -5",
		`{"exclusiveMinimum":0,"maximum":9007199254740991}`:                          "above 0", // z.int().positive()
		`{"minimum":-9007199254740991,"maximum":9007199254740991}`:                   "",
		`{"minimum":1,"maximum":9007199254740991}`:                                   "at least 1",
		`{"exclusiveMinimum":-9007199254740991,"exclusiveMaximum":9007199254740991}`: "",
		`{"minimum":-1e999,"maximum":1e999}`:                                         "",
		`{"minimum":1e999}`:                                                          "at least 1e999",
		`{"minimum":` + strings.Repeat("9", 1000) + `}`:                              "",
		// Draft 4 has booleans.
		`{"minimum":0,"exclusiveMinimum":true}`:                                          "above 0",
		`{"minimum":0,"exclusiveMinimum":true,"maximum":10,"exclusiveMaximum":true}`:     "above 0, below 10",
		`{"minimum":1,"exclusiveMinimum":false,"maximum":10}`:                            "1 to 10",
		`{"exclusiveMinimum":true,"exclusiveMaximum":true}`:                              "",
		`{"exclusiveMinimum":"0","minimum":"NaN","maximum":null,"exclusiveMaximum":[1]}`: "",
		`{"multipleOf":0.5}`:                              "a multiple of 0.5",
		`{"multipleOf":1}`:                                "",
		`{"multipleOf":"x"}`:                              "",
		`{"minLength":1}`:                                 "at least 1 character",
		`{"minLength":0,"maxLength":40}`:                  "0 to 40 characters",
		`{"minLength":36,"maxLength":36}`:                 "exactly 36 characters",
		`{"minLength":9,"maxLength":2}`:                   "at least 9 characters, at most 2 characters",
		`{"minLength":9,"maxLength":10}`:                  "9 to 10 characters",
		`{"minLength":-3,"maxLength":-1}`:                 "",
		`{"minLength":1.5,"maxLength":1e30}`:              "",
		`{"minLength":2.0}`:                               "at least 2 characters",
		`{"minItems":1,"maxItems":1}`:                     "exactly 1 item",
		`{"minItems":0,"maxItems":9007199254740991}`:      "",
		`{"minItems":{},"maxItems":true}`:                 "",
		`{"format":"date","pattern":"^x$","minLength":2}`: "format date, at least 2 characters, matches ^x$",
		`{"format":["date"],"pattern":5}`:                 "",
	} {
		if got := signed(withX(schema)).Parameters[0].comment; got != want {
			t.Errorf("%s demands %q, want %q", schema, got, want)
		}
	}
}

// TestNoKeywordOfAnyKindEndsTheReader: a server may give each keyword any value, and any
// two of them together.
//
//test:alone
func TestNoKeywordOfAnyKindEndsTheReader(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads thousands of schemas")
	}
	keywords := []string{
		"type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
		"minItems", "maxItems", "minProperties", "maxProperties", "uniqueItems", "pattern", "format", "default", "description", "title",
		"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas",
		"unevaluatedProperties", "items", "prefixItems", "contains", "additionalItems", "anyOf", "oneOf", "allOf", "not", "if", "then", "else",
		"$ref", "$dynamicRef", "$recursiveRef", "$id", "id", "$anchor", "$dynamicAnchor", "$defs", "definitions", "$schema", "nullable", "examples",
	}
	values := []string{
		`null`, `true`, `false`, `0`, `-1`, `1.5`, `1e999999999`, `-0`, strings.Repeat("9", 500), `9007199254740991`, `""`, `"NaN"`, `"#"`, `"string"`,
		`"object"`, `[]`, `[[]]`, `[null]`, `["a"]`, `[{}]`, `["string",5]`, `{}`, `{"a":1}`, `{"a":{"$ref":"#"}}`, `{"type":"integer"}`,
	}
	try := func(schema string) {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("%s: %v", schema, p)
			}
		}()
		raw := json.RawMessage(schema)
		for _, sig := range []*Signature{New(raw, raw), New(json.RawMessage(withX(schema)), json.RawMessage(withX(schema)))} {
			sig.Doc("f")
			sig.Line("f", 1000)
			sig.Brief("f")
			for _, value := range []string{`{}`, `{"x":1}`, `{"x":{"a":[]}}`, `{"x":"s","y":null}`, `{"x":[1,"a"]}`} {
				named, _ := ParseArguments(json.RawMessage(value))
				_, _ = sig.Bind("f", nil, named)
				_, _ = sig.Bind("f", []json.RawMessage{json.RawMessage(value)}, nil)
				_, _ = sig.Fit("f", json.RawMessage(value))
			}
		}
		Shape(raw)
	}
	for i, key := range keywords {
		for j, value := range values {
			try(fmt.Sprintf(`{%q:%s}`, key, value))
			// With another, whose value goes through all of them.
			other := keywords[(i+j+1)%len(keywords)]
			for _, with := range values {
				if (i+j)%3 == 0 {
					try(fmt.Sprintf(`{%q:%s,%q:%s}`, key, value, other, with))
				}
			}
		}
	}
}
