package toon

import (
	"encoding/json"
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
			got, err := Marshal(c.JSON)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.TOON {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", c.JSON, got, c.TOON)
			}
		})
	}
}

func TestTOONOfJSONValues(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"int", "7", "v: 7"},
		{"int64 beyond float64", "9223372036854775807", "v: 9223372036854775807"},
		{"float", "2.5", "v: 2.5"},
		{"negative zero", "-0", "v: 0"},
		{"negative zero with a fraction", "-0.0", "v: 0"},
		{"infinity", "-1e999", "v: null"},
		{"strings", `["a", "b c", "1"]`, `v[3]: a,b c,"1"`},
		{"no strings", `{"stdout": []}`, "v:\n  stdout: []"},
		{"nothing", "{}", "v:"},
		{"keys in their order", `{"b": 1, "a": [{"y": 1, "x": 2}]}`, "v:\n  b: 1\n  a[1]{y,x}:\n    1,2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := Marshal([]byte(`{"v":` + c.in + "}")); err != nil || got != c.want {
				t.Errorf("Marshal(%s) = %q, %v, want %q", c.in, got, err, c.want)
			}
		})
	}
}

func TestTOONRefusesWhatItCannotSay(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"lone surrogate", "\"a\xed\xa0\x80\"", "invalid UTF-8"},
		{"broken key", "{\"\xff\":1}", "invalid UTF-8"},
		{"one key twice", `{"a":1,"a":2}`, "duplicate"},
		{"a list that does not end", "[1", "invalid character"},
		{"an object that does not end", `{"a":1`, "EOF"},
		{"deep nesting", strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1), "levels of nesting"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := `{"v":` + c.in + "}"
			if c.want == "EOF" {
				text = `{"v":` + c.in
			}
			if got, err := Marshal([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Marshal = %q, %v, want an error with %q", got, err, c.want)
			}
		})
	}
	if got, err := Marshal([]byte("[]")); err == nil {
		t.Errorf("Marshal of a list = %q", got)
	}
}
