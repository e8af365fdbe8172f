package rawjson

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/json/jsontext"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/seeds"
)

// FuzzScan checks that the scanner accepts exactly JSON, except for values that
// nest too deeply.
func FuzzScan(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-0.5e+7,true,false,null,"x\u00e9\\\"\n"],"b":{}}`, ` [ ] `, `{"a":1,}`, `[1,]`, `[,1]`, `{"a"}`, `{1:2}`, `01`, `1.`, `1e`, `-`, `.5`, `+1`,
		`"\u12g4"`, `"\x"`, `"`, `"\`, `"\u12`, "\"a\x01\"", "\"caf\xe9\"", `tru`, `nul`, `{}{}`, `1 2`, ``, ` `, `[[[[[[[[[]]]]]]]]]`, "\"12345678\x1f\"",
		`"` + strings.Repeat("1234567", 9) + `\\"`, `"` + strings.Repeat("é", 40) + `"`, "\u00a01", "[1\v]", `"` + strings.Repeat(`\"`, 20) + `"`, "\"\x7f\x80\xff\"",
	} {
		f.Add([]byte(text))
	}
	for _, tool := range seeds.Tools(f) {
		f.Add(tool)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s := Scanner{Text: text}
		s.Depth = 1000
		value := s.Value()
		ok := s.AtEnd()
		if ok != json.Valid(text) && strings.Count(string(text), "[")+strings.Count(string(text), "{") < 1000 {
			t.Errorf("takes %.200q: %v", text, ok)
		}
		if ok && string(value) != string(bytes.TrimSpace(text)) {
			t.Errorf("of %.200q it takes %.200q", text, value)
		}
		checkLoops(t, text, json.Valid(text))
	})
}

// checkLoops compares what the loops find in an object or list with encoding/json.
func checkLoops(t *testing.T, text []byte, isJSON bool) {
	s := Scanner{Text: text, Depth: MaxDepth - 2} // of a value, in brackets of its own
	names, values := 0, 0
	for name, value := range s.Members {
		if !json.Valid(name) || !json.Valid(value) {
			t.Errorf("of %.200q a member is %.100q: %.100q", text, name, value)
		}
		names++
	}
	if whole := s.AtEnd(); whole && !isJSON || !whole && isJSON && bytes.TrimSpace(text)[0] == '{' {
		t.Errorf("the members of %.200q: %d, whole: %v", text, names, whole)
	}
	s = Scanner{Text: text, Depth: MaxDepth - 2}
	for n, value := range s.Items {
		if n != values || !json.Valid(value) {
			t.Errorf("of %.200q item %d is %.100q", text, n, value)
		}
		values++
	}
	if whole := s.AtEnd(); whole && !isJSON || !whole && isJSON && bytes.TrimSpace(text)[0] == '[' {
		t.Errorf("the items of %.200q: %d, whole: %v", text, values, whole)
	}
}

// TestScannerTakesWhatPackageJSONTakes, by itself and within what is JSON otherwise.
func TestScannerTakesWhatPackageJSONTakes(t *testing.T) {
	for _, text := range []string{
		`1`, `-0.5e+7`, `"a"`, `true`, `false`, `null`, ` [ 1 , [ 2 ] , { } ] `, ` { "a" : 1 , "b" : { "c" : [ ] } } `, "\t{\n\"a\"\r:\n1\t}",
		`{1}`, `{true}`, `{{}}`, `{[]}`, `{"a"}`, `{"a" 1}`, `{"a",1}`, `{"a":}`, `{"a"::1}`, `{:1}`, `{,}`, `{a:1}`, `{1:1}`, `{null:1}`, `{"a":1,}`, `{"a":1,2}`,
		`{"a":1,"b"}`, `{"a":1,"b" 2}`, `{"a":1 "b":2}`, `{"a":1;"b":2}`, `{"a":1]`, `[1}`, `[1,]`, `[,1]`, `[1 2]`, `["a":1]`, `[`, `{`, `]`, `}`, `{"a":1}}`, `[1]]`,
		`trux`, `tru`, `truE`, `truee`, `falsy`, `nope`, `nul`, `nuLl`, `NaN`, `xxxx`, `'a'`, `01`, `1.`, `.5`, `+1`, `-`, `1e`, `1e+`, `0x1`, `1_0`, `--1`,
		`"\x"`, `"\u12g4"`, `"`, `"\`, "\"\x01\"", "\v1", "\u00a01", "\ufeff1", "1\x00", `//`, `1 // one`, `1,2`, `1 2`, `"a":1`, ``, ` `,
	} {
		for _, around := range []string{"%s", " %s ", "[%s]", "[1, %s, 2]", `{"a":%s}`, `{"a":1, "b": %s, "c":2}`, `{%s}`, `{%s:1}`, `{"a":1,%s:2}`} {
			whole := fmt.Appendf(nil, around, text)
			want := json.Valid(whole)
			s := Scanner{Text: whole}
			value := s.Value()
			if got := s.AtEnd(); got != want || want && string(value) != string(bytes.TrimSpace(whole)) {
				t.Errorf("takes %q: %v, as %q", whole, got, value)
			}
			checkLoops(t, whole, want)
		}
	}
}

func TestObjectHasItsNamesAsTheyAreWritten(t *testing.T) {
	s := Scanner{Text: []byte(` { "a" : 1, "\u0061":{"b":2} ,"":[], "\"" :null} 5`)}
	var got []string
	for name := range s.Object {
		got = append(got, string(name), string(s.Value()))
	}
	if want := []string{`"a"`, `1`, `"\u0061"`, `{"b":2}`, `""`, `[]`, `"\""`, `null`}; !slices.Equal(got, want) || !s.OK() || s.AtEnd() {
		t.Errorf("got %q", got)
	}
	if value := s.Value(); string(value) != "5" || !s.AtEnd() {
		t.Errorf("what follows is %q", value)
	}
}

// loops are all loops of a scanner, by the bracket that theirs begins with and by their name.
var loops = map[byte]map[string]func(s *Scanner, body func() bool){
	'{': {
		"Object":  func(s *Scanner, body func() bool) { s.Object(func([]byte) bool { s.Value(); return body() }) },
		"Members": func(s *Scanner, body func() bool) { s.Members(func(_, _ []byte) bool { return body() }) },
	},
	'[': {
		"List":  func(s *Scanner, body func() bool) { s.List(func(int) bool { s.Value(); return body() }) },
		"Items": func(s *Scanner, body func() bool) { s.Items(func(int, []byte) bool { return body() }) },
	},
}

func TestLoopsPassOverNothingElse(t *testing.T) {
	for bracket, named := range loops {
		for name, loop := range named {
			for _, text := range []string{"", "}", "]", "1", `"a"`, "null", ":", ",", `{"a":1}`, "[1]"} {
				if text != "" && text[0] == bracket {
					continue
				}
				s, rounds := Scanner{Text: []byte(text)}, 0
				loop(&s, func() bool { rounds++; return true })
				if rounds != 0 || s.OK() || s.AtEnd() || s.Offset != 0 || s.Value() != nil {
					t.Errorf("%s of %q: %d rounds up to %d, %v", name, text, rounds, s.Offset, s.OK())
				}
			}
		}
	}
}

func TestLoopsEndWhenTheirBodyDoes(t *testing.T) {
	for bracket, text := range map[byte]string{'{': `{"a":1,"b":2|,"c":3}`, '[': `[1,2|,3]`} {
		end := strings.Index(text, "|")
		for name, loop := range loops[bracket] {
			s, rounds := Scanner{Text: []byte(text[:end] + text[end+1:])}, 0
			loop(&s, func() bool { rounds++; return rounds < 2 })
			if rounds != 2 || s.Offset != end || !s.OK() || s.AtEnd() {
				t.Errorf("%s: %d rounds up to %d, %v", name, rounds, s.Offset, s.OK())
			}
		}
	}
}

func TestNestedIsOfTheLastValue(t *testing.T) {
	s := Scanner{Text: []byte(`[[[1]], 2] [[[]]] {"a":[{}],"b":1} {"a":1} [] {} "[[" 1`)}
	for _, want := range []int{3, 2, 2, 1, 0, 0, 0, 0} {
		if value := s.Value(); value == nil || s.Nested != want {
			t.Errorf("%s nests %d deep, want %d", value, s.Nested, want)
		}
	}
	for text, want := range map[string]int{` [[1]]`: 2, `[[], [[]]]`: 2, `{"a": {"b": {}}}`: 2, ` 1`: 0} {
		if !NestsAtMost([]byte(text), want) || NestsAtMost([]byte(text), want-1) {
			t.Errorf("%s does not nest %d deep", text, want)
		}
	}
}

func TestMembersAndItemsAreBounded(t *testing.T) {
	object := []byte(`{"a":1,"b":2}`)
	if all, err := MembersUpTo(2, object); err != nil || len(all) != 2 {
		t.Errorf("as many as there may be: %v, %v", all, err)
	}
	if _, err := MembersUpTo(1, object); err == nil || err.Error() != "has more than 1 members" {
		t.Errorf("one more: %v", err)
	}
	list := "[" + strings.Repeat("1,", maxItems-1) + "1]"
	if all, err := Items([]byte(list)); err != nil || len(all) != maxItems {
		t.Errorf("as many as there may be: %d, %v", len(all), err)
	}
	if _, err := Items([]byte("[1," + list[1:])); err == nil || err.Error() != "has more than 1000000 items" {
		t.Errorf("one more: %v", err)
	}
}

func TestMembersAndItemsNestAsDeepAsTheyLike(t *testing.T) {
	deep := strings.Repeat(`{"a":[`, 100_000) + strings.Repeat(`]}`, 100_000)
	all, err := Members([]byte(`{"deep":` + deep + `,"name":"x"}`))
	if err != nil || len(all) != 2 || string(all[0].Value) != deep || string(all[1].Value) != `"x"` {
		t.Errorf("%d members, %v", len(all), err)
	}
	list, err := Items([]byte("[1, " + deep + ` , "x"] `))
	if err != nil || len(list) != 3 || string(list[1]) != deep || string(list[2]) != `"x"` {
		t.Errorf("%d items, %v", len(list), err)
	}
	for _, wrong := range []string{deep[1:], deep[:len(deep)-1], deep + deep, strings.Replace(deep, "]}]}", "}]}]", 1), strings.Repeat("[", 3<<20)} {
		if list, err := Items([]byte("[" + wrong + "]")); err == nil {
			t.Errorf("%.20s is %d items", wrong, len(list))
		}
	}
}

func TestScannerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	for name, text := range map[string]string{
		"a list":   "[1" + strings.Repeat(",1", 1<<20) + "]",
		"objects":  "[{}" + strings.Repeat(`,{"a":1}`, 1<<18) + "]",
		"a string": `"` + strings.Repeat(`\"`, 1<<20) + `"`,
	} {
		s := Scanner{Text: []byte(text), Context: ctx}
		if ok := s.Value() != nil; !ok || s.Offset != len(text) {
			t.Errorf("%s: %v at %d", name, ok, s.Offset)
		}
	}
	cancel()
	for name, text := range map[string]string{
		"a list":   "[1" + strings.Repeat(",1", 1<<20) + "]",
		"objects":  "[{}" + strings.Repeat(`,{"a":1}`, 1<<18) + "]",
		"a string": `"` + strings.Repeat(`\"`, 1<<20) + `"`,
	} {
		s := Scanner{Text: []byte(text), Context: ctx}
		if ok := s.Value() != nil; ok || s.Offset > 2*betweenLooks {
			t.Errorf("%s: %v at %d", name, ok, s.Offset)
		}
	}
	s := Scanner{Text: []byte(`{"a":[1,"x"]}`), Context: ctx}
	if ok := s.Value() != nil; !ok || !s.AtEnd() {
		t.Errorf("a short text: %v at %d", ok, s.Offset)
	}
}

func TestScannerRefusesDeepNesting(t *testing.T) {
	for _, open := range []string{"[", `{"":`} {
		s := Scanner{Text: []byte(strings.Repeat(open, 4<<20))}
		if ok := s.Value() != nil; ok || s.Offset > 2*len(open)*MaxDepth {
			t.Errorf("%s: %v at %d", open, ok, s.Offset)
		}
	}
}

// BenchmarkScan compares the scanner with encoding/json and its jsontext.
func BenchmarkScan(b *testing.B) {
	rows := make([]map[string]any, 12_000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": fmt.Sprintf("row number %d", i), "price": float64(i) / 7, "ok": i%2 == 0, "tags": []string{"a", "b"}}
	}
	for name, value := range map[string]any{
		"text":    strings.Repeat("0123456789abcdef", 1<<16),
		"lines":   strings.Repeat("2026-11-21 10:00:00 \"GET /index.html\" 200 5120 ms=12\n", 1<<20/53),
		"umlauts": strings.Repeat("Straßenbahn fährt über die Brücke ", 1<<15),
		"records": rows,
	} {
		text, err := json.Marshal(map[string]any{"content": value})
		if err != nil {
			b.Fatal(err)
		}
		for by, valid := range map[string]func() bool{
			"scanner": func() bool { return (&Scanner{Text: text}).Value() != nil },
			"json":    func() bool { return json.Valid(text) },
			"jsontext": func() bool {
				d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
				_, err := d.ReadToken()
				for d.PeekKind() != '}' && err == nil {
					err = d.SkipValue()
				}
				return err == nil
			},
			"jsontext, in memory": func() bool {
				return jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
			},
		} {
			b.Run(name+"/"+by, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					if !valid() {
						b.Fatal("it is no JSON")
					}
				}
			})
		}
	}
}
