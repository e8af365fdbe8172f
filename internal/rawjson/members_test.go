package rawjson

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func TestMembersAreThoseOfPackageJSON(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for text, want := range map[string][]Member{
		` { } `:                               nil,
		`{"a":1,"b":2}`:                       {{"a", raw(`1`)}, {"b", raw(`2`)}},
		"{ \"b\" :\t1 ,\n\"a\"\r: -0.5e+7 } ": {{"b", raw(`1`)}, {"a", raw(`-0.5e+7`)}},
		`{"z":{"a": [1, 2], "b": {"c" : 3}}, "a": "}"}`:        {{"z", raw(`{"a": [1, 2], "b": {"c" : 3}}`)}, {"a", raw(`"}"`)}},
		`{"\u0061":1.50,"":null, "caf\u00e9\"": false,"é":[]}`: {{"a", raw(`1.50`)}, {"", raw(`null`)}, {`café"`, raw(`false`)}, {"é", raw(`[]`)}},
		`{"a\ud800":true}`:   {{"a\ufffd", raw(`true`)}},
		"{\"caf\xe9\":\"\"}": {{"caf\ufffd", raw(`""`)}},
	} {
		all, err := Members([]byte(text))
		if err != nil || !reflect.DeepEqual(all, want) {
			t.Errorf("%s has %q, %v\nwant %q", text, all, err, want)
		}
		var decoded map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &decoded); err != nil || len(decoded) != len(want) {
			t.Errorf("%s has %q in package json, %v", text, decoded, err)
		}
		for name, value := range decoded {
			if found, ok := Find(all, name); !ok || string(found) != string(value) {
				t.Errorf("%s: %q is %s, and %s in package json", text, name, found, value)
			}
		}
	}
}

func TestItemsAreThoseOfPackageJSON(t *testing.T) {
	for text, want := range map[string][]string{
		` [ ] `:                              nil,
		`[1,2]`:                              {`1`, `2`},
		"[ -0 ,\t\"]\" ,\ntrue\r, 1E+2 ] \n": {`-0`, `"]"`, `true`, `1E+2`},
		`[[1, 2], {"a" : 1, "b" : [ ]}, [[], {}],null]`: {`[1, 2]`, `{"a" : 1, "b" : [ ]}`, `[[], {}]`, `null`},
	} {
		var got, decoded []string
		list, err := Items([]byte(text))
		for _, item := range list {
			got = append(got, string(item))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %q, %v\nwant %q", text, got, err, want)
		}
		err = json.Unmarshal([]byte(text), &list)
		for _, item := range list {
			decoded = append(decoded, string(item))
		}
		if err != nil || !slices.Equal(got, decoded) {
			t.Errorf("%s has %q, and %q in package json, %v", text, got, decoded, err)
		}
	}
}

func TestMembersAndItemsAreOfObjectsAndLists(t *testing.T) {
	for _, text := range []string{``, ` `, `null`, `1`, `"{}"`, `}`, `]`, `:`, `{`, `[`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1}}`, `{} 1`, `[]]`, `[1`, `[1,`, `{1}`, `["a":1]`} {
		if all, err := Members([]byte(text)); err == nil || err.Error() != "is not a JSON object" {
			t.Errorf("%s has members %q, %v", text, all, err)
		}
		if list, err := Items([]byte(text)); err == nil || err.Error() != "is not a list" || list != nil {
			t.Errorf("%s has items %q, %v", text, list, err)
		}
	}
	if all, err := Members([]byte(`[]`)); err == nil {
		t.Errorf("a list has members %q", all)
	}
	if list, err := Items([]byte(`{}`)); err == nil {
		t.Errorf("an object has items %q", list)
	}
}

func TestFindTakesTheFirstOfThatName(t *testing.T) {
	all, err := Members([]byte(`{"A":1,"b":2,"a":3,"\u0061":4,"":null}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"A": "1", "a": "3", "b": "2", "": "null"} {
		if value, ok := Find(all, name); !ok || string(value) != want {
			t.Errorf("%q is %s, %v; want %s", name, value, ok, want)
		}
	}
	for _, name := range []string{"B", `"a"`, "aa"} {
		if value, ok := Find(all, name); ok || value != nil {
			t.Errorf("%q is %s, %v", name, value, ok)
		}
	}
}

func TestIsNullIsOfNothingElse(t *testing.T) {
	for text, want := range map[string]bool{"null": true, " \tnull\r\n": true, "": false, "nul": false, "nulls": false, "NULL": false, `"null"`: false, "[null]": false, "0": false} {
		if got := IsNull([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestTextIsOfStrings(t *testing.T) {
	for text, want := range map[string]string{`"x"`: "x", " \t\r\n\"x\" ": "x", `""`: "", `"\u0061\"\n"`: "a\"\n", `"null"`: "null", "\"caf\xe9\"": "caf\ufffd"} {
		if got, ok := Text([]byte(text)); !ok || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{``, ` `, `null`, ` null`, `1`, `true`, `["x"]`, `{"x":"x"}`, `x`, `"x`, `"x"y`, `"\x"`} {
		if got, ok := Text([]byte(text)); ok || got != "" {
			t.Errorf("%q is %q, %v", text, got, ok)
		}
	}
}
