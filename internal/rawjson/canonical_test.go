package rawjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/seeds"
)

func TestCanonicalIsOneForm(t *testing.T) {
	for text, want := range map[string]string{
		" { \"b\" : 1 , \"a\" : [ 1 , true , null ] }\n":                             `{"b":1,"a":[1,true,null]}`,
		`{"n":[-0,-0.0,1e2,1E+2,100,1.50,9007199254740993,1e999999999,0.1e-400]}`:    `{"n":[-0,-0.0,1e2,1E+2,100,1.50,9007199254740993,1e999999999,0.1e-400]}`,
		`"\u0061\/\u002F\u003c<&>\u000a\n\u0000\b\f\r\t\u001f"`:                      `"a//<<&>\n\n\u0000\b\f\r\t\u001f"`,
		"\"caf\u00e9 \u2028\u0085\x7f \U0001f600 \\ud83d\\uDE00 \\u00E9 \\\" \\\\\"": `"caf\u00e9 \u2028\u0085\u007f \ud83d\ude00 \ud83d\ude00 \u00e9 \" \\"`,
		`{"a":{},"b":[],"":{"":1}}`:                                                  `{"a":{},"b":[],"":{"":1}}`,
		`{"a":{"k":1},"b":{"k":2},"A":3}`:                                            `{"a":{"k":1},"b":{"k":2},"A":3}`,
		`[[],[[]],{}]`:                                                               `[[],[[]],{}]`,
	} {
		got, err := Canonical([]byte(text))
		if err != nil || string(got) != want {
			t.Errorf("%s is %s, %v\nwant %s", text, got, err, want)
		}
	}
}

// TestCanonicalRefusesWhatProgramsReadDifferently, at any depth and in any notation.
func TestCanonicalRefusesWhatProgramsReadDifferently(t *testing.T) {
	many := func(last string) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		return "{" + b.String() + `"` + last + `":1}`
	}
	for text, want := range map[string]string{
		`{"amount":1,"amount":1000}`:                    `the name "amount" is there twice`,
		`{"a":[{"b":{"amount":1,"\u0061mount":1000}}]}`: `the name "amount" is there twice`,
		`{"\ud83d\ude00":1,"` + "\U0001f600" + `":2}`:   `the name "\ud83d\ude00" is there twice`,
		many("k3"):        `the name "k3" is there twice`,
		many("\\u006b99"): `the name "k99" is there twice`,
		`{"":1,"":2}`:     `the name "" is there twice`,
		`{"` + strings.Repeat("n", 500) + `":1,"` + strings.Repeat("n", 500) + `":2}`: `nnn… is there twice`,
		`{"a":"\ud800"}`:       `half of a surrogate pair, \ud800`,
		`{"a":"\udc00\ud800"}`: `half of a surrogate pair, \udc00`,
		`{"a":"\ud800\ud800"}`: `half of a surrogate pair`,
		`{"\udce9":1}`:         `half of a surrogate pair, \udce9`,
		"{\"a\":\"caf\xe9\"}":  "not UTF-8",
		"{\"\xc0\x80\":1}":     "not UTF-8",
		"\"\xed\xa0\x80\"":     "not UTF-8",
		`{"a":NaN}`:            "not JSON",
		`{"a":Infinity}`:       "not JSON",
		`{"a":01}`:             "not JSON",
		`{"a":+1}`:             "not JSON",
		`{"a":1,}`:             "not JSON",
		`{"a":1 "b":2}`:        "not JSON",
		`{'a':1}`:              "not JSON",
		`{"a":1}{"a":2}`:       "not JSON",
		`{"a":"` + "\n" + `"}`: "not JSON",
		`{"a"`:                 "not JSON",
		`{"a":`:                "not JSON",
		`[1`:                   "not JSON",
		`{"a":"\ud800`:         "not JSON",
		"{\"a\":\"caf\xc3":     "not JSON",
		``:                     "not JSON",
		`[` + strings.Repeat(`{"a":1},`, manyNames+1) + `1]`: "more than 500000 names",
		strings.Repeat("[", 1e6):                             "nests more than 10000 deep",
		strings.Repeat(`{"a":`, 1e6):                         "nests more than 10000 deep",
	} {
		got, err := Canonical([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%.80q is %.80q, %v; want %s", text, got, err, want)
		}
	}
}

// FuzzArguments: the one form of a text says what the text says, says no name twice, and is its own
// form.
func FuzzArguments(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-0.5e+7,true,false,null,"x\u00e9\\\"\n"],"b":{}}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1,"b":2}}`, `"\ud83d\ude00\u2028"`, `"\ud800"`,
		"\"caf\xe9\"", `[1e999999999,-0,100.0]`, `{"K":1,"k":2}`, "{\"\x7f\":\"\\/\"}", ` { } `, `[]`, `01`, `{"a":1,}`, ``,
	} {
		f.Add([]byte(text))
	}
	for _, tool := range seeds.Tools(f) {
		f.Add(tool)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Canonical(text)
		if err != nil {
			return
		}
		if !json.Valid(text) || !utf8.Valid(text) {
			t.Fatalf("takes %.200q", text)
		}
		if again, err := Canonical(got); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%.200q is %.200q, and that is %.200q, %v", text, got, again, err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, got); err != nil || compact.String() != string(got) || bytes.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%.200q is %.200q, %v", text, got, err)
		}
		if was, is := decoded(t, text), decoded(t, got); !reflect.DeepEqual(was, is) {
			t.Errorf("%.200q is %.200q, which says something else", text, got)
		}
	})
}

// decoded reads a text, and fails the test if it has a name twice.
func decoded(t *testing.T, text []byte) any {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var read func() any
	read = func() any {
		token, err := dec.Token()
		if err != nil {
			t.Fatalf("reading %.200q: %v", text, err)
		}
		delim, _ := token.(json.Delim)
		if delim == 0 {
			return token
		}
		var items []any // of an object also, for their order
		names := map[any]bool{}
		for dec.More() {
			items = append(items, read())
			if name := items[len(items)-1]; delim == '{' {
				if names[name] {
					t.Fatalf("%.200q has %q twice", text, name)
				}
				names[name] = true
				items = append(items, read())
			}
		}
		if _, err := dec.Token(); err != nil {
			t.Fatal(err)
		}
		return append(items, delim)
	}
	return read()
}

// BenchmarkCanonical takes arguments as calls have them, of some 200 bytes, and a large text.
func BenchmarkCanonical(b *testing.B) {
	for name, text := range map[string]string{
		"200 bytes": `{"owner": "toolcell", "repo": "toolcell", "title": "Crash at start", "body": "It ends with \"no space left\" \u2013 see the log.", "labels": ["bug", "start"], "assignee": null, "priority": 2, "draft": false}`,
		"1 MB":      `{"text": "` + strings.Repeat("0123456789abcdef", 1<<16) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Canonical([]byte(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
