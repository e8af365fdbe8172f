package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/rawjson"
)

const issueSchema = `{"type":"object","properties":{
	"body":{"type":"string"},"owner":{"type":"string"},"repo":{"type":"string"},"title":{"type":"string"},
	"state":{"enum":["open","closed"]},"limit":{"type":"integer","default":30},"from":{"type":"string"},
	"milestone":{"type":["integer","null"]}},"required":["owner","repo","title"]}`

// given makes arguments of a JSON array and a JSON object.
func given(t *testing.T, positional, named string) ([]json.RawMessage, []rawjson.Member) {
	t.Helper()
	var args []json.RawMessage
	if err := json.Unmarshal([]byte(positional), &args); err != nil {
		t.Fatal(err)
	}
	byName, err := ParseArguments(json.RawMessage(named))
	if err != nil {
		t.Fatal(err)
	}
	return args, byName
}

func TestBindMapsArgumentsAsPythonDoes(t *testing.T) {
	object := `{"properties":{"config":{"type":"object"},"name":{"type":"string"}},"required":["config"]}`
	anything := `{"properties":{"value":{},"name":{"type":"string"}},"required":["value"]}`
	for _, tt := range []struct{ name, schema, positional, named, want string }{
		{"by position", issueSchema, `["o","r","t","b"]`, `{}`, `{"owner":"o","repo":"r","title":"t","body":"b"}`},
		{"by name", issueSchema, `[]`, `{"title":"t","repo":"r","owner":"o"}`, `{"owner":"o","repo":"r","title":"t"}`},
		{"both", issueSchema, `["o","r"]`, `{"title":"t","state":"open"}`, `{"owner":"o","repo":"r","title":"t","state":"open"}`},
		{"an alias", issueSchema, `["o","r","t"]`, `{"from_":"x"}`, `{"owner":"o","repo":"r","title":"t","from":"x"}`},
		{"the name behind an alias", issueSchema, `["o","r","t"]`, `{"from":"x"}`, `{"owner":"o","repo":"r","title":"t","from":"x"}`},
		{"one mapping", issueSchema, `[{"owner":"o","repo":"r","title":"t"}]`, `{}`, `{"owner":"o","repo":"r","title":"t"}`},
		{"one mapping and names, which win", issueSchema, `[{"owner":"o","repo":"r","title":"t"}]`, `{"title":"u"}`, `{"owner":"o","repo":"r","title":"u"}`},
		{"a name wins over its alias", issueSchema, `[{"owner":"o","repo":"r","title":"t","from_":"x"}]`, `{"from":"y"}`, `{"owner":"o","repo":"r","title":"t","from":"y"}`},
		{"an alias wins over its name", issueSchema, `[{"owner":"o","repo":"r","title":"t","from":"x"}]`, `{"from_":"y"}`, `{"owner":"o","repo":"r","title":"t","from":"y"}`},
		{"None leaves out", issueSchema, `["o","r","t",null]`, `{"state":null,"limit":null}`, `{"owner":"o","repo":"r","title":"t"}`},
		{"None where it is a value", issueSchema, `["o","r","t"]`, `{"milestone":null}`, `{"owner":"o","repo":"r","title":"t","milestone":null}`},
		{"a lenient server may know", issueSchema, `["o","r","t"]`, `{"state":"OPEN"}`, `{"owner":"o","repo":"r","title":"t","state":"OPEN"}`},
		{"large numbers stay exact", issueSchema, `["o","r","t"]`, `{"limit":12345678901234567890}`, `{"owner":"o","repo":"r","title":"t","limit":12345678901234567890}`},
		{"a mapping that is the first argument", object, `[{"a":1}]`, `{"name":"n"}`, `{"config":{"a":1},"name":"n"}`},
		{"a mapping that has all by name", object, `[{"config":{"a":1},"name":"n"}]`, `{}`, `{"config":{"a":1},"name":"n"}`},
		{"a mapping that names an argument and something else", object, `[{"config":{"a":1},"x":2}]`, `{}`, `{"config":{"config":{"a":1},"x":2}}`},
		{"a mapping that lacks an argument", object, `[{"name":"n"}]`, `{}`, `{"config":{"name":"n"}}`},
		{"an empty mapping that is the first argument", object, `[{}]`, `{}`, `{"config":{}}`},
		{"a mapping where anything may come", anything, `[{"a":1}]`, `{}`, `{"value":{"a":1}}`},
		{"the arguments where anything may come", anything, `[{"value":1}]`, `{}`, `{"value":1}`},
		{"what is listed as needed but has a default", `{"properties":{"level":{"type":"string","default":"info"}},"required":["level"]}`, `[]`, `{}`, `{"level":"info"}`},
		{"any names where none are known", `{"type":"object"}`, `[]`, `{"a":1}`, `{"a":1}`},
		{"a mapping where none are known", `{"type":"object"}`, `[{"a":1}]`, `{"b":2}`, `{"a":1,"b":2}`},
		{"others where they are allowed", `{"properties":{"a":{}},"additionalProperties":true}`, `[1]`, `{"b":2}`, `{"a":1,"b":2}`},
		{"others where parts of the schema are elsewhere", `{"properties":{"a":{}},"allOf":[{"$ref":"http://x"}]}`, `[1]`, `{"b":2}`, `{"a":1,"b":2}`},
		{"numbers of an enum", `{"properties":{"n":{"enum":[1,2]}}}`, `[1.0]`, `{}`, `{"n":1.0}`},
		{"an enum that may be null", `{"properties":{"n":{"anyOf":[{"enum":["a"]},{"type":"null"}]}}}`, `[null]`, `{}`, `{"n":null}`},
	} {
		args, named := given(t, tt.positional, tt.named)
		got, err := signed(tt.schema).Bind("f", args, named)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}

func TestBindNamesWhatIsRight(t *testing.T) {
	const it = "it is f(owner: str, repo: str, title: str, body: str = None, "
	for _, tt := range []struct {
		name, schema, positional, named, kind string
		want                                  []string
	}{
		{"a misspelt name", issueSchema, `["o","r"]`, `{"titel":"t"}`, TypeError, []string{"f() has no parameter 'titel' (did you mean 'title'?) and lacks 'title'; " + it}},
		{"a name that is like none", issueSchema, `["o","r","t"]`, `{"x":"t"}`, TypeError, []string{"f() has no parameter 'x'; " + it}},
		{"a part of a name", issueSchema, `["o","r","t"]`, `{"milestone_number":1}`, TypeError, []string{"did you mean 'milestone'?"}},
		{"another case", issueSchema, `["o","r","t"]`, `{"Body":""}`, TypeError, []string{"did you mean 'body'?"}},
		{"a letter too many", `{"properties":{"a":{"type":"number"},"b":{"type":"number"}}}`, `[]`, `{"a":1,"bb":2}`, TypeError, []string{"has no parameter 'bb' (did you mean 'b'?)"}},
		{"another half", `{"properties":{"startdate":{}}}`, `[]`, `{"start_time":2}`, TypeError, []string{"did you mean 'startdate'?"}},
		{"another name", `{"properties":{"a":{"type":"number"}}}`, `[]`, `{"x":1}`, TypeError, []string{"has no parameter 'x'; it is"}},
		{"missing ones", issueSchema, `[]`, `{}`, TypeError, []string{"f() lacks 'owner', 'repo', 'title'; " + it}},
		{"too many", issueSchema, `[1,2,3,4,5,6,7,8,9]`, `{}`, TypeError, []string{"takes at most 8 arguments and got 9; " + it}},
		{"twice", issueSchema, `["o","r","t"]`, `{"owner":"p"}`, TypeError, []string{"got two values for 'owner'"}},
		{"a name and its alias", issueSchema, `["o","r","t"]`, `{"from":"p","from_":"q"}`, TypeError, []string{"got two values for 'from_'"}},
		{"a value that an enum has not", issueSchema, `["o","r","t"]`, `{"state":"done"}`, ValueError, []string{`f() got "done" for state, which must be one of "open", "closed"`}},
		{"the same for null in a pair", `{"properties":{"n":{"enum":["a",null]}}}`, `["b"]`, `{}`, ValueError, []string{`got "b" for n`, `"a"`}},
		{"a wrong name in a mapping", issueSchema, `[{"owner":"o","repo":"r","title":"t","labels":[]}]`, `{}`, TypeError, []string{"has no parameter 'labels'"}},
		{"a mapping with a name twice", `{"properties":{"a":{"type":"string"}}}`, `[{"a":"x","a":"y"}]`, `{}`, TypeError, []string{"f(): a must be a string, not dict"}},
		{"none are taken", `{"properties":{},"additionalProperties":false}`, `[]`, `{"a":1}`, TypeError, []string{"f() has no parameter 'a'; it is f()"}},
		{"none are taken, by position", `{"properties":{},"additionalProperties":false}`, `[1]`, `{}`, TypeError, []string{"takes no arguments"}},
		{"positions where none are known", `{"type":"object"}`, `[1]`, `{}`, TypeError, []string{"by name"}},
		{"None for what is needed", issueSchema, `["o","r",null]`, `{}`, TypeError, []string{"f(): title must be a string, not None"}},
		{
			"a value that is like one of many", of(`{"enum":[` + counted(25, `"value%d"`, ",") + `]}`), `["value24x"]`, `{}`, ValueError,
			[]string{`one of ` + counted(20, `"value%d"`, ", ") + `, 5 more; the nearest is "value24"`},
		},
		{
			"a number that is like one of many", of(`{"enum":[` + counted(25, `%d`, ",") + `]}`), `[124]`, `{}`, ValueError,
			[]string{", 5 more; the nearest is 12"},
		},
		{
			"many twice", `{"properties":{` + counted(100, `"a%d":{}`, ",") + `}}`, `[` + counted(100, "%d", ",") + `]`, `{` + counted(100, `"a%d":0`, ",") + `}`, TypeError,
			[]string{"got two values for 'a0', ", "'a19' and 80 more; it is "},
		},
		{"names with control characters", `{"properties":{"a":{}}}`, `[]`, `{"x\n\u001b[31m'y":1}`, TypeError, []string{`'x [31m\'y'`}},
	} {
		args, named := given(t, tt.positional, tt.named)
		got, err := signed(tt.schema).Bind("f", args, named)
		var wrong *ArgumentError
		if !errors.As(err, &wrong) || wrong.Kind != tt.kind {
			t.Errorf("%s: got %s, %v", tt.name, got, err)
			continue
		}
		for _, part := range tt.want {
			if !strings.Contains(wrong.Message, part) {
				t.Errorf("%s: %q lacks %q", tt.name, wrong.Message, part)
			}
		}
	}
}

// TestBindOfManyWrongNamesIsQuick: code in the sandbox chooses them, and the
// nearest of each is looked for on the host.
func TestBindOfManyWrongNamesIsQuick(t *testing.T) {
	var properties, names []string
	for i := range maxParameters {
		properties = append(properties, `"`+strings.Repeat("p", 60)+string(rune('a'+i%26))+strings.Repeat("q", i%60)+`":{}`)
	}
	for i := range 3000 {
		names = append(names, `"`+strings.Repeat("x", 60)+strings.Repeat("y", i)+`":1`)
	}
	_, named := given(t, `[]`, "{"+strings.Join(names, ",")+"}")
	_, err := signed(`{"properties":{`+strings.Join(properties, ",")+`}}`).Bind("f", nil, named)
	if err == nil || len(err.Error()) > 4000 || !strings.Contains(err.Error(), "has none of 2990 more") {
		t.Errorf("got %.4000v", err)
	}
	if _, err := ParseArguments(json.RawMessage(`[1]`)); err == nil {
		t.Error("a list was taken for arguments")
	}
}

func TestParseArgumentsFindsWhatJSONDoes(t *testing.T) {
	for _, raw := range []string{
		`{}`, ` { } `, `{"a":1}`, "{ \"a\" :\t1 ,\n\"b\" : null }", `{"a":"\\\"}","b":"{["}`, `{"a\"b\u0041":{"c":[1,{"d":"]"}]},"e":[]}`,
		`{"":"","x":-1.5e3,"y":true}`, `{"a":[[[]]],"b":{}}`, "{\"\u2028\":\"é\\ud800\"}",
	} {
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(raw), &want); err != nil {
			t.Fatal(err)
		}
		got, err := ParseArguments(json.RawMessage(raw))
		if err != nil || len(got) != len(want) {
			t.Errorf("%s: got %v, %v", raw, got, err)
		}
		for _, a := range got {
			if string(a.Value) != string(want[a.Name]) {
				t.Errorf("%s: %q is %s, want %s", raw, a.Name, a.Value, want[a.Name])
			}
		}
	}
	for _, raw := range []string{`[]`, ` [ ] `, `[1]`, `[ 1 , "a,]" ,null]`, `[[1,2],{"a":[3]},"\\"]`} {
		var want []json.RawMessage
		if err := json.Unmarshal([]byte(raw), &want); err != nil {
			t.Fatal(err)
		}
		got, err := ParseList(json.RawMessage(raw))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) && len(want) > 0 {
			t.Errorf("%s: got %s, %v", raw, got, err)
		}
	}
	for _, broken := range []string{`{}`, `5`, `[`, `[1`, `[,]`, `[1]]`, `["a`, "[" + strings.Repeat("1,", maxArguments) + "1]"} {
		if got, err := ParseList(json.RawMessage(broken)); err == nil {
			t.Errorf("%.20s gave %d items", broken, len(got))
		}
	}
	for _, broken := range []string{`[1]`, `5`, `{`, `{"a`, `{"a"}`, `{"a":`, `{"a":1`, `{"a":1}}`, `{a:1}`, `{"a\`, `{"a":"\`, `{"a":1,"\u0061":2}`} {
		if got, err := ParseArguments(json.RawMessage(broken)); err == nil {
			t.Errorf("%s gave %v", broken, got)
		}
	}
}

// TestBindRefusesOnlyWhatTheSchemaSurelyRefuses: everything else is for the server.
func TestBindRefusesOnlyWhatTheSchemaSurelyRefuses(t *testing.T) {
	var wide []string
	for i := range maxParameters + 100 {
		wide = append(wide, fmt.Sprintf(`"p%d":{"type":"integer"}`, i))
	}
	const forms = `{"oneOf":[{"properties":{"kind":{"const":"number"},"value":{"type":"number"}},"required":["kind","value"]},` +
		`{"properties":{"kind":{"const":"text"}},"required":["kind"]}]}`
	var branches []string
	for i := range maxSchemaBranch + 10 {
		branches = append(branches, fmt.Sprintf(`{"properties":{"p%d":{"type":"string"}},"required":["all"]}`, i))
	}
	for _, tt := range []struct{ name, schema, named, want string }{
		{"a default that does not fit, left out", `{"properties":{"a":{"type":"string","default":null}},"required":["a"]}`, `{}`, `{}`},
		{"a default of another type, left out", `{"properties":{"a":{"type":"integer","default":"7"}},"required":["a"]}`, `{}`, `{}`},
		{"a default outside of the enum, left out", `{"properties":{"a":{"enum":["x"],"default":""}},"required":["a"]}`, `{}`, `{}`},
		{"a default that fits", `{"properties":{"a":{"type":["string","null"],"default":null}},"required":["a"]}`, `{}`, `{"a":null}`},
		{"a default of one form only", `{"oneOf":[{"properties":{"k":{"const":"a","default":"a"}},"required":["k"]},{"properties":{"k":{"const":"b"},"n":{}},"required":["k"]}]}`, `{"n":1}`, `{"n":1}`},
		{"a property that one form has", forms, `{"kind":"text","value":"x"}`, `{"kind":"text","value":"x"}`},
		{"a property of one form of anyOf", `{"properties":{"a":{}},"anyOf":[{"properties":{"b":{"type":"string"}}},{"required":["a"]}]}`, `{"a":1,"b":2}`, `{"a":1,"b":2}`},
		{"a property of the form that is not read", `{"anyOf":[{"properties":{"b":{"type":"string"}}},{"$ref":"http://x/y"}]}`, `{"b":2}`, `{"b":2}`},
		{"more forms than are read", `{"anyOf":[` + strings.Join(branches, ",") + `]}`, `{"p55":"x"}`, `{"p55":"x"}`},
		{"properties beyond those that are parameters", `{"properties":{` + strings.Join(wide, ",") + `},"additionalProperties":{"type":"string"}}`, `{"p1050":5,"other":"x"}`, `{"p1050":5,"other":"x"}`},
		{"a name too long for a parameter", `{"properties":{"` + strings.Repeat("n", 300) + `":{"type":"integer"}},"additionalProperties":{"type":"string"}}`, `{"` + strings.Repeat("n", 300) + `":5}`, `{"` + strings.Repeat("n", 300) + `":5}`},
		{
			"a reference below an $id", `{"properties":{"a":{"$id":"http://x/a","$ref":"#/$defs/t","$defs":{"t":{"type":"integer"}}},"b":{"$id":"b","properties":{"c":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"integer"}}}},"$defs":{"t":{"type":"string"}}}`,
			`{"a":1,"b":{"c":1}}`, `{"a":1,"b":{"c":1}}`,
		},
		{"a reference below an id of old drafts", `{"properties":{"a":{"id":"b","properties":{"c":{"$ref":"#/definitions/t"}},"definitions":{"t":{"type":"integer"}}}},"definitions":{"t":{"type":"string"}}}`, `{"a":{"c":1}}`, `{"a":{"c":1}}`},
		{"a reference to an anchor", `{"properties":{"a":{"$ref":"#t"}},"t":{"type":"string"},"$defs":{"x":{"$anchor":"t","type":"integer"}}}`, `{"a":1}`, `{"a":1}`},
		{"a dynamic reference", `{"properties":{"a":{"$dynamicRef":"#t"}},"$defs":{"x":{"$dynamicAnchor":"t","type":"integer"}}}`, `{"a":1}`, `{"a":1}`},
		{"properties of a dynamic reference", `{"$dynamicRef":"#t","properties":{"a":{}},"$defs":{"x":{"$dynamicAnchor":"t","properties":{"b":{}}}}}`, `{"b":1}`, `{"b":1}`},
		{"properties beside a reference", `{"$ref":"#/$defs/x","properties":{"b":{}},"$defs":{"x":{"properties":{"a":{}}}}}`, `{"b":1}`, `{"b":1}`},
		{"a reference with escapes of URLs", `{"properties":{"a":{"$ref":"#/$defs/a%20b"}},"$defs":{"a b":{"type":"integer"},"a%20b":{"type":"string"}}}`, `{"a":1}`, `{"a":1}`},
		{"a number that no float can hold", `{"properties":{"a":{"enum":[1e999,2]}}}`, `{"a":1e999}`, `{"a":1e999}`},
		{"a constant with a number that no float can hold", of(`{"const":{"x":1e999}}`), `{"a":{"x":2}}`, `{"a":{"x":2}}`},
		{"a number that no float can hold for a constant", of(`{"const":{"x":2}}`), `{"a":{"x":1e999}}`, `{"a":{"x":1e999}}`},
		{"prefixItems and the list that it replaced", of(`{"prefixItems":[{"type":"string"}],"items":[{"type":"integer"}]}`), `{"a":[1]}`, `{"a":[1]}`},
		{"prefixItems in an old draft", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}}}`, `{"a":[1]}`, `{"a":[1]}`},
	} {
		_, named := given(t, `[]`, tt.named)
		got, err := signed(tt.schema).Bind("f", nil, named)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	// What is sure is refused all the same.
	for _, tt := range []struct{ schema, named, want string }{
		{forms, `{"kind":"other"}`, `f() got "other" for kind, which must be one of "number", "text"`},
		{forms, `{"value":1}`, "lacks 'kind'"},
		{`{"oneOf":[{"properties":{"v":{"type":"number"}}},{"properties":{"v":{"type":"null"}}}]}`, `{"v":"x"}`, "v must be a number or None, not str"},
		{`{"properties":{"v":{"type":"number"}},"oneOf":[{"properties":{"v":{}}},{"properties":{"v":{}}}]}`, `{"v":"x"}`, "v must be a number, not str"},
		{`{"allOf":[{"properties":{"v":{"type":"number"}}},{"properties":{"v":{"minimum":2}}}]}`, `{"v":"x"}`, "v must be a number, not str"},
		{`{"properties":{` + strings.Join(wide, ",") + `},"additionalProperties":{"type":"string"}}`, `{"p1050":"x"}`, "p1050 must be an integer, not str"},
		{`{"properties":{"b":{"$id":"b","properties":{"c":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"integer"}}}},"$defs":{"t":{"type":"string"}}}`, `{"b":{"c":"x"}}`, "b.c must be an integer, not str"},
		{`{"properties":{"a":{"$ref":"#/$defs/a%20b"}},"$defs":{"a b":{"type":"integer"}}}`, `{"a":"x"}`, "a must be an integer, not str"},
	} {
		_, named := given(t, `[]`, tt.named)
		if got, err := signed(tt.schema).Bind("f", nil, named); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.200s: %s gave %s, %v; want %s", tt.schema, tt.named, got, err, tt.want)
		}
	}
}

// TestTypedTextsBecomeWhatTheirParametersTake, and stay texts where they may be texts alone.
func TestTypedTextsBecomeWhatTheirParametersTake(t *testing.T) {
	s := New(json.RawMessage(`{"properties":{"n":{"type":"integer","maximum":9},"s":{"type":"string"},"null":{"anyOf":[{"type":"string"},{"type":"null"}]},
		"either":{"type":["integer","string"]},"any":{},"one":{"enum":["1",2]}},"additionalProperties":{"type":"boolean"}}`), nil)
	for typed, want := range map[[2]string]string{
		{"n", " 5 "}: `5`, {"n", "99"}: `99`, {"n", "many"}: `"many"`, {"n", `"5"`}: `"5"`, {"s", "5"}: `"5"`, {"s", `"5"`}: `"\"5\""`, {"s", "["}: `"["`,
		{"null", "null"}: `null`, {"null", `"x"`}: `"\"x\""`, {"either", "5"}: `5`, {"either", "5.5"}: `"5.5"`, {"any", `"x"`}: `"x"`, {"any", "[1]"}: `[1]`,
		{"one", "1"}: `"1"`, {"one", "2"}: `2`, {"other", "true"}: `true`, {"other", "yes"}: `"yes"`,
	} {
		quoted, _ := json.Marshal(typed[1])
		if got := s.Read([]rawjson.Member{{Name: typed[0], Value: quoted}})[0].Value; string(got) != want {
			t.Errorf("%s=%s is %s, want %s", typed[0], typed[1], got, want)
		}
	}
}
