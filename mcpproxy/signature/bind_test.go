package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const issueSchema = `{"type":"object","properties":{
	"body":{"type":"string"},"owner":{"type":"string"},"repo":{"type":"string"},"title":{"type":"string"},
	"state":{"enum":["open","closed"]},"limit":{"type":"integer","default":30},"from":{"type":"string"},
	"milestone":{"type":["integer","null"]}},"required":["owner","repo","title"]}`

// given makes arguments of a JSON array and a JSON object.
func given(t *testing.T, positional, named string) ([]json.RawMessage, []Argument) {
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
		{"None leaves out", issueSchema, `["o","r","t",null]`, `{"state":null,"limit":null}`, `{"owner":"o","repo":"r","title":"t"}`},
		{"None where it is a value", issueSchema, `["o","r","t"]`, `{"milestone":null}`, `{"owner":"o","repo":"r","title":"t","milestone":null}`},
		{"a lenient server may know", issueSchema, `["o","r","t"]`, `{"state":"OPEN"}`, `{"owner":"o","repo":"r","title":"t","state":"OPEN"}`},
		{"large numbers stay exact", issueSchema, `["o","r","t"]`, `{"limit":12345678901234567890}`, `{"owner":"o","repo":"r","title":"t","limit":12345678901234567890}`},
		{"a mapping that is the first argument", object, `[{"a":1}]`, `{"name":"n"}`, `{"config":{"a":1},"name":"n"}`},
		{"a mapping that has all by name", object, `[{"config":{"a":1},"name":"n"}]`, `{}`, `{"config":{"a":1},"name":"n"}`},
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
		{"missing ones", issueSchema, `[]`, `{}`, TypeError, []string{"f() lacks 'owner', 'repo', 'title'; " + it}},
		{"too many", issueSchema, `[1,2,3,4,5,6,7,8,9]`, `{}`, TypeError, []string{"takes at most 8 arguments and got 9; " + it}},
		{"twice", issueSchema, `["o","r","t"]`, `{"owner":"p"}`, TypeError, []string{"got two values for 'owner'"}},
		{"a name and its alias", issueSchema, `["o","r","t"]`, `{"from":"p","from_":"q"}`, TypeError, []string{"got two values for 'from_'"}},
		{"a value that an enum has not", issueSchema, `["o","r","t"]`, `{"state":"done"}`, ValueError, []string{`f() got "done" for state, which must be one of "open", "closed"`}},
		{"the same for null in a pair", `{"properties":{"n":{"enum":["a",null]}}}`, `["b"]`, `{}`, ValueError, []string{`got "b" for n`, `"a"`}},
		{"a wrong name in a mapping", issueSchema, `[{"owner":"o","repo":"r","title":"t","labels":[]}]`, `{}`, TypeError, []string{"has no parameter 'labels'"}},
		{"none are taken", `{"properties":{},"additionalProperties":false}`, `[]`, `{"a":1}`, TypeError, []string{"f() has no parameter 'a'; it is f()"}},
		{"none are taken, by position", `{"properties":{},"additionalProperties":false}`, `[1]`, `{}`, TypeError, []string{"takes no arguments"}},
		{"positions where none are known", `{"type":"object"}`, `[1]`, `{}`, TypeError, []string{"by name"}},
		{"None for what is needed", issueSchema, `["o","r",null]`, `{}`, TypeError, []string{"f(): title must be a string, not None"}},
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
