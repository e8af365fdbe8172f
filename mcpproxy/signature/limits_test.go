package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// listed repeats an item of a JSON list.
func listed(n int, item string) string { return strings.Repeat(item+",", n-1) + item }

// counted joins n texts, each with its number.
func counted(n int, format, separator string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, separator)
}

// object makes a JSON object of this many bytes.
func object(size int) string { return `{"x":"` + strings.Repeat("y", size-len(`{"x":""}`)) + `"}` }

// padded makes a schema this long.
func padded(size int, schema string) string { return strings.Repeat(" ", size-len(schema)) + schema }

func TestTypesAreBounded(t *testing.T) {
	lists := func(n int) string { return deep(`{"items":`, `{"type":"integer"}`, `}`, n) }
	fields := func(n int) string { return `{"properties":{` + counted(n, `"f%d":{}`, ",") + `}}` }
	members := func(n int) string { return `{"anyOf":[` + listed(n, `{"type":"string"}`) + `]}` }
	values := func(n int) string { return `{"type":"integer","enum":[` + listed(n, "7") + `]}` }
	for name, tt := range map[string]struct{ schema, want string }{
		"as deep":         {lists(maxTypeDepth - 1), deep("list[", "int", "]", maxTypeDepth-1)},
		"deeper":          {lists(maxTypeDepth), deep("list[", "list", "]", maxTypeDepth-1)},
		"as many fields":  {fields(maxTypeFields), "{" + counted(maxTypeFields, `"f%d"?: Any`, ", ") + "}"},
		"a field more":    {fields(maxTypeFields + 1), "dict"},
		"as many members": {members(maxTypeMembers), "str"},
		"a member more":   {members(maxTypeMembers + 1), "Any"},
		"as many values":  {values(maxLiterals), "Literal[" + strings.Repeat("7, ", shownLiterals) + "...]"},
		"a value more":    {values(maxLiterals + 1), "int"},
	} {
		if got := signed(withX(tt.schema)).Parameters[0].typ.fit(docAnnotation); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestLongValuesAreNotCompared with those that are allowed: the server does it.
func TestLongValuesAreNotCompared(t *testing.T) {
	number := func(size int) string { return "1." + strings.Repeat("0", size-len("1.")) }
	for name, tt := range map[string]struct{ schema, value, want string }{
		"as long a value":    {`{"const":{"x":1}}`, object(maxCompared), `for a, which must be {"x": 1}`},
		"a longer value":     {`{"const":{"x":1}}`, object(maxCompared + 1), ""},
		"as long a constant": {`{"const":` + object(maxCompared) + `}`, `{"x":1}`, `for a, which must be {"x": ...}`},
		"a longer constant":  {`{"const":` + object(maxCompared+1) + `}`, `{"x":1}`, ""},
		"as long a number":   {`{"enum":[2]}`, number(maxNumber), "for a, which must be 2"},
		"a longer number":    {`{"enum":[2]}`, number(maxNumber + 1), ""},
	} {
		_, named := given(t, `[]`, `{"a":`+tt.value+`}`)
		_, err := signed(of(tt.schema)).Bind("f", nil, named)
		if (err != nil) != (tt.want != "") || err != nil && !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// TestOnlyAShortDefaultIsSent: a longer one has to be given.
func TestOnlyAShortDefaultIsSent(t *testing.T) {
	needed := func(value string) string { return `{"properties":{"a":{"default":` + value + `}},"required":["a"]}` }
	value := object(maxDefault)
	if got, err := signed(needed(value)).Bind("f", nil, nil); err != nil || string(got) != `{"a":`+value+`}` {
		t.Errorf("%s, %v", got, err)
	}
	got, err := signed(needed(object(maxDefault+1))).Bind("f", nil, nil)
	if err == nil || err.Error() != "f() lacks 'a'; it is f(a: Any)" {
		t.Errorf("one more: %s, %v", got, err)
	}
}

func TestArgumentsAreCounted(t *testing.T) {
	for n, want := range map[int]error{maxArguments: nil, maxArguments + 1: errTooManyArguments} {
		named, err := ParseArguments(json.RawMessage(`{` + counted(n, `"a%d":1`, ",") + `}`))
		if !errors.Is(err, want) || err == nil && len(named) != n {
			t.Errorf("%d by name: %d, %v", n, len(named), err)
		}
		positional, err := ParseList(json.RawMessage(`[` + listed(n, "1") + `]`))
		if !errors.Is(err, want) || err == nil && len(positional) != n {
			t.Errorf("%d by position: %d, %v", n, len(positional), err)
		}
	}
}

func TestDescribedFieldsAreBounded(t *testing.T) {
	for _, n := range []int{shownFields, shownFields + 1} {
		fields := counted(n, `"f%d":{"description":"about %[1]d"}`, ",")
		want := "f(\n    x: {" + counted(n, `"f%d"?: Any`, ", ") + "},\n" +
			counted(shownFields, "    #   .f%d: about %[1]d\n", "") + ")"
		if got := signed(withX(`{"properties":{` + fields + `}}`)).Doc("f"); got != want {
			t.Errorf("%d fields:\n got %s\nwant %s", n, got, want)
		}
	}
}

// TestDescriptionsAreCutAtAWord, unless that takes more than half of them.
func TestDescriptionsAreCutAtAWord(t *testing.T) {
	for about, want := range map[string]string{
		"ten in all": "ten in all", "ten in alls": "ten in…", "sixsix fifteens": "sixsix…",
		"fives fifteens": "fives fift…", "elevenchars": "elevenchar…",
	} {
		if got := shorten(about, 10); got != want {
			t.Errorf("%q is cut to %q, want %q", about, got, want)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	var c Cache
	get := func(n int) *Signature { return c.Get("s", fmt.Sprint(n), nil, nil) }
	first := get(0)
	for n := range maxSignatures {
		get(n)
	}
	if get(0) != first || len(c.kept) != maxSignatures {
		t.Errorf("%d signatures are kept", len(c.kept))
	}
	if get(maxSignatures); len(c.kept) != 1 {
		t.Errorf("one more: %d signatures are kept", len(c.kept))
	}
	if get(0) == first {
		t.Error("a signature came back that is not kept")
	}
}
