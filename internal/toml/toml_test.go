package toml

import (
	"context"
	"encoding/json"
	json2 "encoding/json/v2"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	gotoml "github.com/pelletier/go-toml/v2"
	"github.com/toolcell/toolcell/internal/seeds"
)

// decode returns what a text says in the types of go-toml.
func decode(text []byte) (map[string]any, error) {
	_, root, err := read(context.Background(), text)
	if err != nil {
		return nil, err
	}
	return plain(root).(map[string]any), nil
}

func plain(v any) any {
	switch v := v.(type) {
	case *table:
		members := make(map[string]any, len(v.members))
		for name, m := range v.members {
			members[name] = plain(m.value)
		}
		return members
	case *list:
		items := make([]any, len(v.items))
		for i, item := range v.items {
			items[i] = plain(item.value)
		}
		return items
	}
	return v
}

func TestDecodeSaysWhatTheTextSays(t *testing.T) {
	got, err := decode([]byte("\ufeffa.b = 1\r\na.c = [{x = 'y'}, 1.5]\n[t.\"u v\"]\nk = true\n[[l]]\nn = 1\n[l.m]\n[[l]]\n[t]\nz = '''\nq'''\n"))
	want := map[string]any{
		"a": map[string]any{"b": int64(1), "c": []any{map[string]any{"x": "y"}, 1.5}},
		"t": map[string]any{"u v": map[string]any{"k": true}, "z": "q"},
		"l": []any{map[string]any{"n": int64(1), "m": map[string]any{}}, map[string]any{}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v\nwant %v", got, err, want)
	}
}

func TestKeysThatDifferInCaseAreTwo(t *testing.T) {
	got, err := decode([]byte("Name = 1\nname = 2\n"))
	if want := map[string]any{"Name": int64(1), "name": int64(2)}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		"a = 1\nb = = 2\n":                  "line 2, column 5: ",
		"a = 1\na = 2":                      "line 2, column 1: key a is already defined",
		"ä = 1":                             "line 1, column 1: invalid character at start of key",
		"'ä' = 'ö' 1":                       "line 1, column 11: expected newline",
		"[a.b]\n[a]\nb.c = 1":               "line 3, column 1: key b is already defined",
		"a.b = 1\n[a]":                      "line 2, column 2: key a is already defined",
		"[a]\n[a]":                          "line 2, column 2: key a is already defined",
		"a = {b = 1}\n[a.c]":                "line 2, column 2: table a is defined inline",
		"a = {b.c = 1}\na.b.d = 1":          "line 2, column 1: key a is already defined",
		"a = 1\n[a.\"b c\"]":                "line 2, column 2: key a is a value already",
		"[a.b]\n[a]\n[a]":                   "line 3, column 2: key a is already defined",
		"[a]\n[[a]]":                        "line 2, column 3: key a is already defined",
		"a = [1]\n[[a]]":                    "line 2, column 3: key a is already defined",
		"a = {'b c' = 1, 'b c' = 2}":        "line 1, column 17: key \"b c\" is already defined",
		"a = 2026-02-31":                    "line 1, column 5: ",
		"x = 99999999999999999999":          "line 1, column 5: the number 99999999999999999999 is out of range",
		"x = [1,\n0xFFFF_FFFF_FFFF_FFFF_F]": "line 2, column 1: the number 0xFFFFFFFFFFFFFFFFF is out of range",
		"x = -1.5e999":                      "line 1, column 5: the number -1.5e999 is out of range",
		"x = 1" + strings.Repeat("0", 500):  "line 1, column 5: the number 1" + strings.Repeat("0", 79) + "… is out of range",
		"a =":                               "line 1, column 3: expected a value, but the line ends",
		"a = \nb = 1":                       "line 1, column 5: expected a value, but the line ends",
		"a = '''\n":                         "line 1, column 8: ",
		"# \xff":                            "line 1, column 3: ",
		"a = " + strings.Repeat("[", 200):   "line 1, column 204: array is incomplete",
		"a" + strings.Repeat(".a", 200):     "line 1, column 401: expected '=' after key",
		strings.Repeat("k", 9000) + "=1\n=": "line 2, column 1: ",
	} {
		_, err := decode([]byte(text))
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
		if as, other := JSON([]byte(text)); as != nil || other == nil || other.Error() != err.Error() {
			t.Errorf("%.40q as JSON: %s, %v", text, as, other)
		}
	}
}

// TestDecodeIsBounded has the shapes that take other decoders cubic time: 10 s and 560 MiB for the first.
func TestDecodeIsBounded(t *testing.T) {
	many := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, tt := range map[string]struct{ text, want string }{
		"tables in tables":       {"x = " + strings.Repeat("{a=", 5000) + "1" + strings.Repeat("}", 5000), "nested more than 100 deep"},
		"tables that do not end": {"x = " + strings.Repeat("{a=", 5000), "the line ends"},
		"lists in lists":         {"x = " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "nested more than 100 deep"},
		"very deep lists":        {"x = " + strings.Repeat("[", 200_000), "nested more than"},
		"a dotted key":           {"a" + strings.Repeat(".a", 5000) + " = 1", "nested more than 100 deep"},
		"a dotted header":        {"[a" + strings.Repeat(".a", 5000) + "]", "nested more than 100 deep"},
		"a long number":          {"x = 0." + strings.Repeat("7", 5000), "a number of 5002 characters; the most is 1000"},
		"a list of empty tables": {"x = [" + strings.Repeat("{},", 500_000) + "]", "too many keys and values"},
		"keys":                   {many("k%d = 1\n", 100_000), ""},
		"tables":                 {many("[t%d]\n", 100_000), ""},
		"keys, inline":           {"x = {a = 1" + many(", k%d = 1", 100_000) + "}", ""},
		"lists of tables":        {many("[[a%d]]\n", 100_000), ""},
	} {
		_, err := decode([]byte(tt.text))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %.200v, want %q", name, err, tt.want)
		}
	}
}

// FuzzDecode: what is accepted is what go-toml accepts, and means the same.
func FuzzDecode(f *testing.F) {
	for _, file := range corpus(f) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(text) < 20_000 {
			f.Add(text)
		}
	}
	for _, s := range []string{
		"a.b.c = 1\n[a.b.d]\n[a]\n", "[[a.b]]\n[a.b.c]\n[[a.b]]\n[[a.b.c]]", "a = {b.c = 1, b.d = [{}, {e = {}}]}", "[a.b]\n[a]\nc = 1",
		"t = 1979-05-27T07:32:00.5Z\nu = 07:32:00\nv = 1979-05-27 07:32:00\nw = 1979-05-27\n", "a = [0x1F, 0o7, 0b1, 1_000, -inf, nan, 1e3, +1.5]",
		"a = \"\"\"\n\\\n  x\"\"\"\"\nb = '''''x'''\nc = \"\\u00e9\\e\"", "[a]\nb.c = 1\n[a.b.e]\n", "\ufeffa=1\r\n",
	} {
		f.Add([]byte(s))
	}
	for _, block := range seeds.Blocks(f, "toml") {
		f.Add([]byte(block))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := decode(text)
		var want map[string]any
		theirs := gotoml.Unmarshal([]byte(strings.TrimPrefix(string(text), "\ufeff")), &want)
		if err != nil {
			if theirs == nil && !strings.Contains(err.Error(), "nested more than") && !strings.Contains(err.Error(), "too many") && !strings.Contains(err.Error(), "the most is") {
				t.Fatalf("%v, but go-toml reads it", err)
			}
			return
		}
		if theirs != nil {
			t.Fatalf("go-toml: %v", theirs)
		}
		if want == nil {
			want = map[string]any{}
		}
		if g, w := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); g != w { // NaN is not equal to itself
			t.Fatalf("%s\nwant %s", g, w)
		}
		if plain, err := JSON(text); err != nil || !json.Valid(plain) {
			t.Fatalf("%s, %v", plain, err)
		}
		if err := Unmarshal(t.Context(), text, new(struct{}), json2.RejectUnknownMembers(false)); err != nil {
			t.Fatal(err)
		}
	})
}

// corpus are the files of TOML in this tree.
func corpus(f *testing.F) (files []string) {
	_ = filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".toml" {
			files = append(files, path)
		}
		return nil
	})
	if len(files) == 0 {
		f.Fatal("no file of TOML")
	}
	return files
}

func TestJSONKeepsTheOrderOfKeys(t *testing.T) {
	got, err := JSON([]byte("z = 2026-01-31\n[b]\nc.x = 1.0\nd = nan\n[a]\n[b.c.e]\n[[l]]\nn = -5\n[[l]]\n\"\" = ['é\\t']\n"))
	if want := `{"z":"2026-01-31","b":{"c":{"x":1,"e":{}},"d":null},"a":{},"l":[{"n":-5},{"":["é\\t"]}]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

func TestLinesAreThoseOfKeysAtTheTop(t *testing.T) {
	got, err := Lines([]byte("\ufeff# mine\r\na = 1\r\nb.c = [\r\n 1,\r\n]\r\n\r\n[d]\nx = 1\nb.e = 2\n"))
	if want := map[string]int{"a": 2, "b": 3, "d": 7}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	_, err = Lines([]byte("a = 1\nb"))
	if wrong, ok := errors.AsType[*Error](err); !ok || wrong.Line != 2 {
		t.Errorf("an error: %v", err)
	}
}
