package toon

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// TestTOONMatchesReferenceEncoder compares with testdata/cases.json,
// which testdata/generate.mjs writes with the reference encoder.
func TestTOONMatchesReferenceEncoder(t *testing.T) {
	text, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Reference string
		Cases     []struct {
			Name string
			JSON json.RawMessage
			TOON string
		}
	}
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Cases) < 200 || golden.Reference == "" {
		t.Fatalf("%d cases from %q, want at least 200 and a name", len(golden.Cases), golden.Reference)
	}
	for _, c := range golden.Cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := Marshal(decodeOrdered(t, c.JSON).(Object))
			if err != nil {
				t.Fatal(err)
			}
			if got != c.TOON {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", c.JSON, got, c.TOON)
			}
		})
	}
}

func TestTOONOfGoValues(t *testing.T) {
	for _, c := range []struct {
		name string
		in   any
		want string
	}{
		{"int", 7, "v: 7"},
		{"int64 beyond float64", int64(math.MaxInt64), "v: 9223372036854775807"},
		{"float", 2.5, "v: 2.5"},
		{"negative zero", math.Copysign(0, -1), "v: 0"},
		{"not a number", math.NaN(), "v: null"},
		{"infinity", math.Inf(-1), "v: null"},
		{"strings", []string{"a", "b c", "1"}, `v[3]: a,b c,"1"`},
		{"no strings", Object{{"stdout", []string{}}}, "v:\n  stdout: []"},
		{"nil map", map[string]any(nil), "v:"},
		{"map in order of its keys", map[string]any{"b": 1, "a": []any{map[string]any{"y": 1, "x": 2}}}, "v:\n  a[1]{x,y}:\n    2,1\n  b: 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := Marshal(Object{{"v", c.in}}); err != nil || got != c.want {
				t.Errorf("encodeTOON(%#v) = %q, %v, want %q", c.in, got, err, c.want)
			}
		})
	}
}

func TestTOONRefusesWhatItCannotSay(t *testing.T) {
	var deep any
	for range maxDepth + 1 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		name string
		in   any
		want string
	}{
		{"lone surrogate", "a\xed\xa0\x80", "not valid UTF-8"},
		{"broken key", Object{{"\xff", 1}}, "not valid UTF-8"},
		{"unknown type", []any{struct{}{}}, "struct {}"},
		{"number as text", json.Number("1"), "json.Number"},
		{"deep nesting", deep, "levels of nesting"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := Marshal(Object{{"v", c.in}}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("encodeTOON = %q, %v, want an error with %q", got, err, c.want)
			}
		})
	}
}

// decodeOrdered decodes JSON with the order of keys kept.
func decodeOrdered(t *testing.T, text []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	next := func() json.Token {
		tok, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	var value func(tok json.Token) any
	value = func(tok json.Token) any {
		switch tok {
		case json.Delim('['):
			arr := []any{}
			for dec.More() {
				arr = append(arr, value(next()))
			}
			next()
			return arr
		case json.Delim('{'):
			obj := Object{}
			for dec.More() {
				key := next().(string)
				obj = append(obj, Field{key, value(next())})
			}
			next()
			return obj
		}
		return tok
	}
	return value(next())
}
