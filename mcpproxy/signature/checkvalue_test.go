package signature

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	nestedSchema = `{"type":"object","properties":{
		"options":{"type":"object","properties":{"depth":{"type":"integer"},"mode":{"enum":["fast","slow"]},"since":{"type":"string","default":"now"},
			"my key":{"type":"number"},"tags":{"type":["array","null"],"items":{"type":"string"}}},"required":["depth","since"]},
		"paths":{"type":"array","items":{"type":"string"}}}}`
	treeSchema = `{"properties":{"tree":{"$ref":"#/$defs/Node"}},"$defs":{"Node":{"type":"object","properties":{
		"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/Node"}}},"required":["name"]}}}`
	shapeSchema = `{"properties":{"shape":{"oneOf":[
		{"type":"object","properties":{"kind":{"const":"circle"},"radius":{"type":"number"}},"required":["kind","radius"]},
		{"type":"object","properties":{"kind":{"const":"square"},"side":{"type":"number"}},"required":["kind","side"]}]}}}`
	actionSchema = `{"type":"object","oneOf":[
		{"properties":{"action":{"const":"make"},"id":{"type":"string"}},"required":["action"]},
		{"properties":{"action":{"const":"drop"},"id":{"type":"integer"}},"required":["action"]}]}`
)

// of makes the schema of one parameter a.
func of(schema string) string { return `{"properties":{"a":` + schema + `}}` }

func TestBindRefusesValuesOfAnotherType(t *testing.T) {
	for _, tt := range []struct{ schema, named, want string }{
		{of(`{"type":"number"}`), `{"a":"x"}`, "TypeError: f(): a must be a number, not str"},
		{of(`{"type":"number"}`), `{"a":true}`, "TypeError: f(): a must be a number, not bool"},
		{of(`{"type":"integer"}`), `{"a":2.5}`, "TypeError: f(): a must be an integer, not float"},
		{of(`{"type":"integer"}`), `{"a":25e-1}`, "TypeError: f(): a must be an integer, not float"},
		{of(`{"type":"boolean"}`), `{"a":1}`, "TypeError: f(): a must be a boolean, not int"},
		{of(`{"type":"string"}`), `{"a":["x"]}`, "TypeError: f(): a must be a string, not list"},
		{of(`{"type":"array"}`), `{"a":"x"}`, "TypeError: f(): a must be an array, not str"},
		{of(`{"type":"object"}`), `{"a":"x"}`, "TypeError: f(): a must be an object, not str"},
		{of(`{"type":["string","null"]}`), `{"a":1}`, "TypeError: f(): a must be a string or None, not int"},
		{of(`{"type":"string","nullable":true}`), `{"a":1}`, "TypeError: f(): a must be a string, not int"},
		{of(`{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}},{"type":"null"}]}`), `{"a":1}`, "TypeError: f(): a must be a string, an array or None, not int"},
		{of(`{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`), `{"a":["x",1]}`, "TypeError: f(): a[1] must be a string, not int"},
		{of(`{"allOf":[{"type":"string"},{"minLength":2}]}`), `{"a":1}`, "TypeError: f(): a must be a string, not int"},
		{of(`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"number"}}`), `{"a":["x",1,"y"]}`, "TypeError: f(): a[2] must be a number, not str"},
		{of(`{"type":"array","items":[{"type":"string"}]}`), `{"a":[1,2]}`, "TypeError: f(): a[0] must be a string, not int"},
		{of(`{"type":"object","additionalProperties":{"type":"string"}}`), `{"a":{"k":1}}`, "TypeError: f(): a.k must be a string, not int"},
		{of(`{"const":5}`), `{"a":6}`, "ValueError: f() got 6 for a, which must be 5"},
		{of(`{"const":{"x":[1]}}`), `{"a":{"x":[2]}}`, `ValueError: f() got {"x":[2]} for a, which must be {"x": [1]}`},
		{of(`{"const":[1]}`), `{"a":[2]}`, `ValueError: f() got [2] for a, which must be [1]`},
		{of(`{"enum":[1,2]}`), `{"a":"1"}`, `ValueError: f() got "1" for a, which must be one of 1, 2`},
		{of(`{"enum":[1,2]}`), `{"a":true}`, `ValueError: f() got true for a, which must be one of 1, 2`},
		{of(`{"enum":[0.5,"x",null]}`), `{"a":2}`, `ValueError: f() got 2 for a, which must be one of 0.5, "x", None`},
		{of(`{"type":"string","enum":["x"]}`), `{"a":2}`, "TypeError: f(): a must be a string, not int"},
		{of(`{"anyOf":[{"enum":["x"]},{"const":"y"},{"type":"integer"}]}`), `{"a":"z"}`, `ValueError: f() got "z" for a, which must be one of "x", "y", an integer`},
		{of(`{"anyOf":[{"type":"string"},{"type":"object","required":["x"]}]}`), `{"a":{}}`, "TypeError: f(): a lacks 'x'"},
		{of(`{"anyOf":[{"type":"string"},{"properties":{"kind":{"const":"circle"}}}]}`), `{"a":{"kind":"line"}}`, `ValueError: f() got "line" for a.kind, which must be "circle"`},
		{
			`{"properties":{"a":{"anyOf":[{"anyOf":[{"$ref":"#/$defs/d"},{"const":"x"}]},{"anyOf":[{"$ref":"#/$defs/d"},{"const":"y"}]}]}},"$defs":{"d":{"enum":[1,2,3]}}}`,
			`{"a":"z"}`, `ValueError: f() got "z" for a, which must be one of 1, 2, 3, "x", 1, 2, 3, "y"`,
		},
		{nestedSchema, `{"options":{"depth":"deep","since":"x"}}`, "TypeError: f(): options.depth must be an integer, not str"},
		{nestedSchema, `{"options":{"depth":null}}`, "TypeError: f(): options.depth must be an integer, not None"},
		{nestedSchema, `{"options":{"depth":1,"mode":"odd"}}`, `ValueError: f() got "odd" for options.mode, which must be one of "fast", "slow"`},
		{nestedSchema, `{"options":{"mode":"fast"}}`, "TypeError: f(): options lacks 'depth'"},
		{nestedSchema, `{"options":{"depth":1,"my key":"x"}}`, "TypeError: f(): options['my key'] must be a number, not str"},
		{nestedSchema, `{"options":{"depth":1,"tags":["x",["y"]]}}`, "TypeError: f(): options.tags[1] must be a string, not list"},
		{nestedSchema, `{"paths":["x","y",3]}`, "TypeError: f(): paths[2] must be a string, not int"},
		{nestedSchema, `{"paths":"one"}`, "TypeError: f(): paths must be an array, not str"},
		{treeSchema, `{"tree":{"name":"x","children":[{"name":"y"},{"name":"z","children":[{"name":1}]}]}}`, "TypeError: f(): tree.children[1].children[0].name must be a string, not int"},
		{treeSchema, `{"tree":{"name":"x","children":[{}]}}`, "TypeError: f(): tree.children[0] lacks 'name'"},
		{shapeSchema, `{"shape":{"kind":"square","side":"long"}}`, "TypeError: f(): shape.side must be a number, not str"},
		{shapeSchema, `{"shape":{"kind":"line"}}`, `ValueError: f() got "line" for shape.kind, which must be one of "circle", "square"`},
		{shapeSchema, `{"shape":"square"}`, "TypeError: f(): shape must be an object, not str"},
		{actionSchema, `{"action":"make","id":[]}`, "TypeError: f(): id must be a string or an integer, not list"},
		{actionSchema, `{"action":"sell"}`, `ValueError: f() got "sell" for action, which must be one of "make", "drop"`},
		{`{"properties":{"from":{"type":"string"}}}`, `{"from":1}`, "TypeError: f(): from_ must be a string, not int"},
		{`{"additionalProperties":{"type":"string"}}`, `{"x\n":1}`, "TypeError: f(): x must be a string, not int"},
	} {
		_, named := given(t, `[]`, tt.named)
		_, err := signed(tt.schema).Bind("f", nil, named)
		var wrong *ArgumentError
		if !errors.As(err, &wrong) || wrong.Kind+": "+wrong.Message != tt.want {
			t.Errorf("%s of %s: got %v, want %s", tt.named, tt.schema, err, tt.want)
		}
	}
}

func TestBindAcceptsWhatFits(t *testing.T) {
	for _, tt := range []struct{ schema, named string }{
		{of(`{"type":"number"}`), `{"a":2}`},
		{of(`{"type":"integer"}`), `{"a":3.0}`},
		{of(`{"type":"integer"}`), `{"a":1e400}`},
		{of(`{"type":"integer"}`), `{"a":-12345678901234567890}`},
		{of(`{"type":"string","nullable":true}`), `{"a":null}`},
		{of(`{"enum":[1,2]}`), `{"a":1.0}`},
		{of(`{"const":{"x":[1]}}`), `{"a":{"x":[1.0]}}`},
		{of(`{"type":"uuid"}`), `{"a":1}`},
		{of(`{"type":["string","uuid"]}`), `{"a":1}`},
		{of(`{"type":5,"enum":"x","items":1,"properties":[],"required":"a","anyOf":{},"$ref":3}`), `{"a":{"b":[1]}}`},
		{of(`{"$ref":"http://example.com/x"}`), `{"a":1}`},
		{of(`{"$ref":"#/nowhere"}`), `{"a":1}`},
		{of(`{"$ref":"#/properties/a"}`), `{"a":1}`},
		{of(`{"anyOf":[{"$ref":"#/properties/a"}]}`), `{"a":1}`},
		{of(`{"anyOf":[{"type":"string"},{}]}`), `{"a":1}`},
		{of(`{"type":"object","anyOf":[{"required":["x"]},{"required":["y"]}]}`), `{"a":{"y":1}}`},
		{of(`{"type":"string","format":"date","minLength":99}`), `{"a":"x"}`},
		{of(`{"type":"object","patternProperties":{"^x":{}},"additionalProperties":{"type":"string"}}`), `{"a":{"x":1}}`},
		{of(`{"type":"object","additionalProperties":false}`), `{"a":{"x":1}}`},
		{of(`true`), `{"a":1}`},
		{nestedSchema, `{"options":{"depth":2,"mode":"FAST","tags":null,"more":1}}`},
		{treeSchema, `{"tree":{"name":"x","children":[]}}`},
		{shapeSchema, `{"shape":{"kind":"square","side":2}}`},
		{actionSchema, `{"action":"drop","id":3}`},
	} {
		_, named := given(t, `[]`, tt.named)
		if got, err := signed(tt.schema).Bind("f", nil, named); err != nil || len(got) != len(tt.named) {
			t.Errorf("%s of %s: got %s, %v", tt.named, tt.schema, got, err)
		}
	}
}

// TestFitChecksValuesOnly: call_tool leaves names to the server.
func TestFitChecksValuesOnly(t *testing.T) {
	for _, tt := range []struct{ schema, arguments, want string }{
		{issueSchema, `{"titel": "t"}`, `{"titel": "t"}`},
		{issueSchema, `{"owner": "o", "body": null}`, `{"owner":"o"}`},
		{issueSchema, `{"owner": null}`, "f(): owner must be a string, not None"},
		{issueSchema, `{"limit": "x"}`, "f(): limit must be an integer, not str"},
		{issueSchema, `{"body": null, "limit": "x"}`, "f(): limit must be an integer, not str"},
		{issueSchema, `{"milestone": null}`, `{"milestone": null}`},
		{issueSchema, `[]`, `[]`},
		{issueSchema, `{"from_": null}`, `{"from_": null}`},
		{`{"properties":{"my-key":{"type":"integer"}},"additionalProperties":true}`, `{"my_key": "text"}`, `{"my_key": "text"}`},
		{`{"additionalProperties":{"type":"string"}}`, `{"x": 1}`, "f(): x must be a string, not int"},
	} {
		got, err := signed(tt.schema).Fit("f", json.RawMessage(tt.arguments))
		if err != nil && err.Error() != tt.want || err == nil && string(got) != tt.want {
			t.Errorf("%s: got %s, %v", tt.arguments, got, err)
		}
	}
}

// TestObjectsOfAnEnumAreLikeNothing, so that none is called the nearest.
func TestObjectsOfAnEnumAreLikeNothing(t *testing.T) {
	_, err := signed(withX(`{"enum":[`+counted(25, `{"n":%d}`, ",")+`]}`)).Fit("f", json.RawMessage(`{"x":{"n":26}}`))
	if err == nil || !strings.HasSuffix(err.Error(), `{"n": 19}, 5 more`) {
		t.Errorf("got %v", err)
	}
}

// TestChecksAreBounded: schemas come from servers, and values from code.
//
//test:alone
func TestChecksAreBounded(t *testing.T) {
	deep := strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000)
	ref := `{"$ref":"#/$defs/x"}`
	many := strings.Repeat(ref+",", 49) + ref
	long := `"` + strings.Repeat("x", 1<<20) + `"`
	for name, tt := range map[string]struct{ schema, value string }{
		"branches of branches": {`{"properties":{"a":` + ref + `},"$defs":{"x":{"type":"array","items":{"anyOf":[` + many + `]}}}}`, deep[:12] + "1" + deep[len(deep)-12:]},
		"branches in a loop":   {`{"properties":{"a":` + ref + `},"$defs":{"x":{"anyOf":[` + many + `]}}}`, `1`},
		"all of all":           {`{"properties":{"a":` + ref + `},"$defs":{"x":{"allOf":[` + many + `]}}}`, `1`},
		"a deep value":         {`{"properties":{"a":` + ref + `},"$defs":{"x":{"items":` + ref + `}}}`, deep},
		"a long list":          {of(`{"items":{"type":"integer"}}`), `[` + strings.Repeat("1,", 2_000_000) + `"x"]`},
		"many values":          {of(`{"items":{"enum":[` + strings.Repeat(`"y",`, 1999) + `"z"]}}`), `[` + strings.Repeat(long+",", 20) + long + `]`},
		"a long number":        {of(`{"anyOf":[` + strings.Repeat(`{"enum":[1,2,3]},`, 40) + `{}]}`), strings.Repeat("1", 1<<20)},
		"many schemas":         {of(`{"type":"object","properties":{` + strings.Repeat(`"p":{"type":"object"},`, 6000) + `"q":{"type":"string"}}}`), `{"q":1}`},
	} {
		sig := signed(tt.schema)
		_, named := given(t, `[]`, `{"a":`+tt.value+`}`)
		start := time.Now()
		_, err := sig.Bind("f", nil, named)
		if took := time.Since(start); took > time.Minute || len(fmt.Sprint(err)) > 2000 {
			t.Errorf("%s: %v after %v", name, err, took)
		} else {
			t.Log(name, took)
		}
	}
}

func BenchmarkBindChecks(b *testing.B) {
	sig := signed(nestedSchema)
	named, _ := ParseArguments(json.RawMessage(`{"options":{"depth":2,"mode":"fast","tags":["a","b"]},"paths":["x","y"]}`))
	for b.Loop() {
		_, _ = sig.Bind("f", nil, named)
	}
}
