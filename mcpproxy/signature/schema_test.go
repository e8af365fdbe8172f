package signature

import (
	"strings"
	"testing"
)

// TestSchemasAreReadUpToABound: one beyond it takes any arguments, as does one that is not JSON.
func TestSchemasAreReadUpToABound(t *testing.T) {
	const others = 4 // nodes beside the texts
	texts := func(n int) string { return `{"properties":{"a":{}},"x":[` + listed(n, `""`) + `]}` }
	// The lists are inside an object.
	lists := func(n int) string { return `{"properties":{"a":{}},"x":` + deep("[", "", "]", n) + `}` }
	const read, unread = "f(a: Any = None)", "f(**more)"
	for name, tt := range map[string]struct{ schema, want string }{
		"as many values":               {texts(maxSchemaNodes - others), read},
		"a value more":                 {texts(maxSchemaNodes - others + 1), unread},
		"as deep":                      {lists(maxSchemaDepth - 1), read},
		"deeper":                       {lists(maxSchemaDepth), unread},
		"an end that is missing":       {`{"properties":{"a":{}}`, unread},
		"a text without an end":        {`{"properties":{"a":{}},"x":"y`, unread},
		"a value that is none":         {`{"properties":{"a":{}},"x":nothing}`, unread},
		"a missing member at the last": {deep(`{"x":`, "", "}", maxSchemaDepth), unread},
		"missing items at the last":    {deep("[", ",", "]", maxSchemaDepth), unread},
	} {
		if got := signed(tt.schema).Line("f", 1000); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestReferencesLeadOnlyToAPlaceInTheirDocument: any other value may come where they lead elsewhere.
func TestReferencesLeadOnlyToAPlaceInTheirDocument(t *testing.T) {
	for ref, want := range map[string]string{
		`"$ref":"#/$defs/t"`: "int", `"$ref":"#/$defs/%74"`: "int", `"$id":"#x","$ref":"#/$defs/t"`: "int",
		`"$ref":"/$defs/t"`: "Any", `"$ref":"other#/$defs/t"`: "Any", `"$ref":"#x$defs/t"`: "Any", `"$ref":"#t"`: "Any",
		`"$ref":"#/$defs/%zz"`: "Any", `"$ref":"#/$defs/u"`: "Any", `"$ref":5`: "Any", `"$id":"http://x/y","$ref":"#/$defs/t"`: "Any",
	} {
		s := signed(`{"properties":{"a":{` + ref + `}},"$defs":{"t":{"type":"integer"}}}`)
		if got := s.Parameters[0].Text; got != want {
			t.Errorf("%s is %s, want %s", ref, got, want)
		}
		_, named := given(t, `[]`, `{"a":"x"}`)
		if _, err := s.Bind("f", nil, named); (err != nil) != (want == "int") {
			t.Errorf("%s: a text gave %v", ref, err)
		}
	}
}

// TestUnclearSchemasTakeOtherArguments: the server knows which.
func TestUnclearSchemasTakeOtherArguments(t *testing.T) {
	const a = `"properties":{"a":{"type":"integer"}}`
	for schema, known := range map[string]bool{
		`{` + a + `}`: true,
		`{` + a + `,"allOf":[{"description":"more"}]}`:                                                          true,
		`{` + a + `,"allOf":[5]}`:                                                                               false,
		`{"$ref":"#/t","t":{` + a + `}}`:                                                                        true,
		`{"$ref":"#/t","t":{` + a + `},"properties":{}}`:                                                        false,
		`{"$ref":"#/t","t":{` + a + `},"required":["b"]}`:                                                       false,
		`{"$ref":"#/t","t":{` + a + `},"allOf":[{}]}`:                                                           false,
		`{"$ref":"#/t","t":{` + a + `},"anyOf":[{}]}`:                                                           false,
		`{"$ref":"#/t","t":{` + a + `},"oneOf":[{}]}`:                                                           false,
		deep(`{"allOf":[`, `{`+a+`}`, `]}`, maxTypeDepth):                                                       true,
		`{` + a + `,"x":0,"allOf":[` + deep(`{"allOf":[`, `{"properties":{"c":{}}}`, `]}`, maxTypeDepth) + `]}`: false,
	} {
		_, named := given(t, `[]`, `{"a":1,"b":2}`)
		got, err := signed(schema).Bind("f", nil, named)
		if known != (err != nil) || known && !strings.HasPrefix(err.Error(), "f() has no parameter 'b'; it is f(a: int") || !known && string(got) != `{"a":1,"b":2}` {
			t.Errorf("%s: %s, %v", schema, got, err)
		}
	}
}

// TestPropertiesAreCollectedUpToABound: parts that refer to each other have them many times over.
func TestPropertiesAreCollectedUpToABound(t *testing.T) {
	refs := func(n int, to string) string { return listed(n, `{"$ref":"#/$defs/`+to+`"}`) }
	schema := func(n int) string {
		return `{"allOf":[` + refs(n, "outer") + `,{"properties":{"last":{}}}],"$defs":{"outer":{"allOf":[` + refs(maxSchemaBranch, "inner") +
			`]},"inner":{"properties":{` + counted(50, `"p%d":{}`, ",") + `}}}}`
	}
	const outer = 1 + maxSchemaBranch*(1+50) // what one takes of the bound
	fitting := (maxCollected - 2) / outer
	for n, want := range map[int]int{fitting: 51, fitting + 2: 50} {
		if got := len(signed(schema(n)).Parameters); got != want {
			t.Errorf("%d parts: %d parameters, want %d", n, got, want)
		}
	}
}

// TestNamesInATypeListAreTexts: a list with anything else in it is not understood.
func TestNamesInATypeListAreTexts(t *testing.T) {
	for types, want := range map[string]string{`["string","null"]`: "f(): x must be a string or None, not int", `["string",null]`: "", `["string","file"]`: ""} {
		_, named := given(t, `[]`, `{"x":5}`)
		_, err := signed(withX(`{"type":`+types+`}`)).Bind("f", nil, named)
		if got := message(err); got != want {
			t.Errorf("%s: %q, want %q", types, got, want)
		}
	}
}

// TestValuesAreCheckedUpToADepth: the server checks what is deeper.
func TestValuesAreCheckedUpToADepth(t *testing.T) {
	s := signed(`{"properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":["array","integer"],"items":{"$ref":"#/$defs/t"}}}}`)
	for depth, want := range map[int]bool{maxCheckDepth: true, maxCheckDepth + 1: false} {
		_, named := given(t, `[]`, `{"a":`+deep("[", `"x"`, "]", depth)+`}`)
		if _, err := s.Bind("f", nil, named); (err != nil) != want {
			t.Errorf("a text %d deep gave %v", depth, err)
		}
	}
}

// TestTypesOfOneSignatureAreBounded: beyond the bound they are not said.
func TestTypesOfOneSignatureAreBounded(t *testing.T) {
	const fitting = maxTypeNodes / 2 // lists and their items
	s := signed(`{"properties":{` + counted(fitting+1, `"p%d":{"items":{"type":"string"}}`, ",") + `}}`)
	if last, more := s.Parameters[fitting-1].Text, s.Parameters[fitting].Text; last != "list[str]" || more != "Any" {
		t.Errorf("%s and then %s", last, more)
	}
}
