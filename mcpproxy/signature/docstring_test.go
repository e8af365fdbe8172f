package signature

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestDocSaysWhatTheServerSaysOfParameters(t *testing.T) {
	a50, b50 := strings.Repeat("a", 50), strings.Repeat("b", 50)
	for name, tt := range map[string]struct{ schema, want string }{
		"a description": {
			`{"properties":{"a":{"type":"string","description":"what\nit is"}}}`,
			"f(\n    a: str = None,  # what it is\n)",
		},
		"a limit": {
			`{"properties":{"a":{"type":"integer","minimum":2}}}`,
			"f(\n    a: int = None,  # at least 2\n)",
		},
		"both": {
			`{"properties":{"a":{"type":"integer","minimum":2,"description":"how many"}}}`,
			"f(\n    a: int = None,  # how many (at least 2)\n)",
		},
		"the server's name": {`{"properties":{"my-arg":{}}}`, "f(\n    my_arg: Any = None,  # \"my-arg\"\n)"},
		"that name and more": {
			`{"properties":{"my-arg":{"description":"what it is"}}}`,
			"f(\n    my_arg: Any = None,  # \"my-arg\": what it is\n)",
		},
		"beside a reference": {
			`{"properties":{"a":{"$ref":"#/t","description":"here"}},"t":{"type":"string","description":"there"}}`,
			"f(\n    a: str = None,  # here\n)",
		},
		"behind a reference": {
			`{"properties":{"a":{"$ref":"#/t"}},"t":{"type":"string","description":"there"}}`,
			"f(\n    a: str = None,  # there\n)",
		},
		"beside a reference that leads nowhere": {
			`{"properties":{"a":{"$ref":"http://x/y","description":"The owner","default":5}}}`,
			"f(\n    a: Any = 5,  # The owner\n)",
		},
		"nothing, in a short line": {`{"properties":{"a":{},"b":{}}}`, "f(a: Any = None, b: Any = None)"},
		"nothing, in too long a one": {
			`{"properties":{"` + a50 + `":{},"` + b50 + `":{}}}`,
			"f(\n    " + a50 + ": Any = None,\n    " + b50 + ": Any = None,\n)",
		},
		"fields of items": {
			withX(`{"items":{"properties":{"id":{"type":"integer","description":"its number"}}}}`),
			"f(\n    x: list[{\"id\"?: int}],\n    #   .id: its number\n)",
		},
		"fields of fields": {
			withX(`{"properties":{"by":{"properties":{"id":{"type":"integer","description":"its number"}}}}}`),
			"f(\n    x: {\"by\"?: {\"id\"?: int}},\n    #   .by.id: its number\n)",
		},
	} {
		if got := signed(tt.schema).Doc("f"); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}

// TestDocOfManyFieldsIsBounded: a model reads it.
func TestDocOfManyFieldsIsBounded(t *testing.T) {
	field := func(n int) string { return fmt.Sprintf(`"f%d":{"description":%q}`, n, strings.Repeat("d", 120)) }
	var fields, parameters []string
	for n := range 20 {
		fields = append(fields, field(n))
	}
	for n := range 45 {
		parameters = append(parameters, fmt.Sprintf(`"p%d":{"properties":{%s}}`, n, strings.Join(fields, ",")))
	}
	doc := signed(`{"properties":{` + strings.Join(parameters, ",") + `}}`).Doc("f")
	if len(doc) > docSize*3/2 || !strings.Contains(doc, " more parameters\n)") {
		t.Errorf("%d bytes, which end with %q", len(doc), doc[len(doc)-100:])
	}
}

func TestDocAndBriefSayWhatIsReturned(t *testing.T) {
	long := strings.Repeat("n", 150)
	for output, want := range map[string]struct{ doc, brief string }{
		``:                  {"f()", "f()"},
		`{"type":"string"}`: {"f() -> str", "f() -> str"},
		`{"type":"object","properties":{"` + long[:50] + `":{"type":"string"},"b":{}}}`: {
			`f() -> {"` + long[:50] + `"?: str, "b"?: Any}`, "f() -> dict", // the brief one has no room for it
		},
		`{"type":"object","properties":{"` + long + `":{"type":"string"},"b":{}}}`: {
			`f() -> {"` + long[:shownLiteral] + `"?: str, "b"?: Any}`, "f() -> dict", // no list of parameters with nothing in it
		},
	} {
		s := New(json.RawMessage(`{"properties":{}}`), json.RawMessage(output))
		if doc, brief := s.Doc("f"), s.Brief("f"); doc != want.doc || brief != want.brief {
			t.Errorf("%s:\n got %s\n and %s\nwant %s\n and %s", output, doc, brief, want.doc, want.brief)
		}
	}
}

// TestDocOfManyParametersIsCut, and says how many are left out.
func TestDocOfManyParametersIsCut(t *testing.T) {
	const line = 16 + 2 // p000: str = None, with its comma and the end of the line
	fitting := (docSize - len("f")) / line
	for n, want := range map[int]string{
		fitting + 1: "= None,\n)",
		fitting + 2: "= None,\n    # and 1 more parameters\n)",
		999:         "= None,\n    # and 88 more parameters\n)",
	} {
		doc := signed(`{"properties":{` + counted(n, `"p%03d":{"type":"string"}`, ",") + `}}`).Doc("f")
		if !strings.HasSuffix(doc, want) {
			t.Errorf("%d parameters: it ends with %q, want %q", n, doc[len(doc)-80:], want)
		}
	}
}
