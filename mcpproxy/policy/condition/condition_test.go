package condition

import (
	"context"
	"encoding/json"
	json2 "encoding/json/v2"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/toml"
)

// parseText takes the value of the key "when" in a text.
func parseText(t *testing.T, text string) ([]Condition, error) {
	t.Helper()
	var tool struct {
		When Conditions `json:"when"`
	}
	err := toml.Unmarshal(t.Context(), []byte(text), &tool)
	return tool.When, err
}

// askedWhen returns why a call with these arguments is asked about, "" if it is not,
// under one condition in TOML.
func askedWhen(t *testing.T, condition, arguments string) string {
	t.Helper()
	canonical, err := rawjson.Canonical([]byte(arguments))
	if err != nil {
		t.Fatalf("%s: %v", arguments, err)
	}
	all, err := parseText(t, "[[when]]\n"+condition)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %v, %v", condition, all, err)
	}
	why, asks := all[0].Check(t.Context(), canonical)
	if asks != (why != "") {
		t.Errorf("%s: asked %v: %q", arguments, asks, why)
	}
	return why
}

// TestEndedContextAsks, whatever has been read by then.
func TestEndedContextAsks(t *testing.T) {
	all, err := parseText(t, "[[when]]\npath = 'amount'\nop = '>'\nvalue = 100")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, asks := all[0].Check(ctx, []byte(`{"amount":1}`)); !asks {
		t.Error("it did not ask")
	}
}

// TestArgumentsThatEndTooSoonAsk, also where what is there would pass; none at all are an empty object.
func TestArgumentsThatEndTooSoonAsk(t *testing.T) {
	all, err := parseText(t, "[[when]]\npath = 'amount'\nop = '>'\nvalue = 100")
	if err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		``:              `amount > 100, but there is no "amount"`,
		`{"amount":1`:   `amount > 100, but the arguments cannot be read`,
		`{"amount":1,`:  `amount > 100, but the arguments cannot be read`,
		`{"amount":1,"`: `amount > 100, but the arguments cannot be read`,
		`{"amount":1}`:  ``,
	} {
		if why, asks := all[0].Check(t.Context(), json.RawMessage(arguments)); why != want || asks != (want != "") {
			t.Errorf("%s: asked %v: %q, want %q", arguments, asks, why, want)
		}
	}
}

func TestConditionsAsk(t *testing.T) {
	const (
		over  = `path = "amount", op = ">", value = 100`
		over2 = `path = "items.*.price", op = ">=", value = 9.5`
		trunk = `path = "branch", op = "==", value = "main"`
		mine  = `path = "to", op = "!=", value = ["me@x.org", "Café"]`
		force = `path = "force", op = "==", value = true`
		calm  = `path = "force", op = "!=", value = false`
		word  = `path = "text", op = "glob", value = "*secret*"`
		home  = `path = "file", op = "outside", value = "/home/me/project/"`
		files = `path = "files.*", op = "outside", value = ["/a", "/b"]`
		large = `path = "n", op = "<", value = 9007199254740993`
		tenth = `path = "n", op = "==", value = 0.1`
		mixed = `path = "n", op = "==", value = [0, "0", false]`
		first = `path = "a.0.b", op = "==", value = 1`
		exact = `path = ["a.b", "c"], op = "==", value = 1`
		other = `path = "n", op = "!=", value = [0, 1]`
		one   = `path = "n", op = "!=", value = 1`
		size  = `path = "größe", op = ">", value = 100`
	)
	for _, tt := range []struct {
		condition, arguments string
		asked                bool
	}{
		{over, `{"amount":100}`, false},
		{over, `{"amount":1e2}`, false},
		{over, `{"amount":100.000}`, false},
		{over, `{"amount":1.0E+2}`, false},
		{over, `{"amount":-0}`, false},
		{over, `{"amount":0e999}`, false},
		{over, `{"amount":-1e300}`, true}, // beyond what is compared
		{over, `{"amount":-1e299}`, false},
		{over, `{"amount":101}`, true},
		{over, `{"amount":100.00000000000000000000001}`, true}, // which a float64 is not
		{over, `{"amount":0.000000000101e12}`, true},
		{over, `{"amount":10001e-2}`, true},
		{over, `{"amount":1e999999999}`, true},
		{over, `{"amount":-1e999999999}`, true},
		{over, `{"amount":1e-999999999}`, true},
		{over, `{"amount":1e99999999999999999999999}`, true},
		{over, `{"amount":0.1e-299}`, false},
		{over, `{"amount":0.1e-9223372036854775808}`, true}, // its negative overflows
		{over, `{"amount":0.1e-9223372036854775809}`, true}, // an exponent that no integer has
		{over, `{"amount":` + strings.Repeat("9", 1_000_000) + `}`, true},
		{over, `{"amount":0.` + strings.Repeat("9", 1_000_000) + `}`, false},
		{over, `{"amount":0.` + strings.Repeat("9", maxNumber) + `}`, true},
		{over, `{"amount":1,"` + strings.Repeat("x", MaxWritten) + `":2}`, true}, // too long to be compared
		{over, `{"amount":"100"}`, true},
		{over, `{"amount":"1"}`, true},
		{over, `{"amount":null}`, true},
		{over, `{"amount":true}`, true},
		{over, `{"amount":[1]}`, true},
		{over, `{"amount":{"value":1}}`, true},
		{over, `{}`, true},
		{over, `{"Amount":1}`, true},
		{over, `{"amount":1,"Amount":1000}`, true}, // which encoding/json takes
		{over, `{"AMOUNT":1000,"amount":1}`, true},
		{over, `{"amount":1,"\uff41mount":1000}`, true},
		{over, `{"amount":1,"amou\u200bnt":1000}`, true},
		{over, `{"amount":1,"amount ":1000}`, true},
		{over, `{"amounts":1000,"amount":1}`, false},
		{over, `{"\u0061mount":101}`, true},
		{over, `{"\u0061mount":99}`, false},
		{over, `{"nested":{"amount":1}}`, true},
		{over, `{"amount":1,"nested":{"amount":1000}}`, false},

		{over2, `{"items":[{"price":1},{"price":9.49}]}`, false},
		{over2, `{"items":[{"price":1},{"price":9.5}]}`, true},
		{over2, `{"items":[{"price":1},{}]}`, true},
		{over2, `{"items":[{"price":1},5]}`, true},
		{over2, `{"items":[]}`, false},
		{over2, `{"items":{"x":{"price":10}}}`, true},
		{over2, `{"items":"none"}`, true},
		{over2, `{}`, true},
		{over2, `{"items":[{"price":9.4999999999999999999999999}]}`, true}, // a float64 is 9.5

		{trunk, `{"branch":"main"}`, true},
		{trunk, `{"branch":"Main"}`, true},
		{trunk, `{"branch":" main"}`, true},
		{trunk, `{"branch":"ma\u200bin"}`, true},
		{trunk, `{"branch":"ｍain"}`, true},
		{trunk, `{"branch":"maın"}`, true}, // whose capital is MAIN
		{trunk, `{"branch":"feature"}`, false},
		{trunk, `{"branch":"größer"}`, false},
		{trunk, `{"branch":""}`, false},
		{trunk, `{"branch":["main"]}`, true},
		{trunk, `{"branch":"` + strings.Repeat("x", maxCompared+1) + `"}`, true},

		{mine, `{"to":"me@x.org"}`, false},
		{mine, `{"to":"m\u0065@x.org"}`, false},
		{mine, `{"to":"Me@x.org"}`, true},
		{mine, `{"to":"me@x.org "}`, true},
		{mine, `{"to":"Caf\u00e9"}`, false},
		{mine, `{"to":"Cafe\u0301"}`, true},
		{mine, `{"to":"` + strings.Repeat("x", MaxWritten) + `"}`, true},
		{mine, `{}`, true},
		{mine, `{"to":null}`, true},
		{mine, `{"to":["me@x.org"]}`, true},

		{force, `{"force":true}`, true},
		{force, `{"force":false}`, false},
		{force, `{"force":"false"}`, true},
		{force, `{"force":0}`, true},
		{force, `{"force":null}`, true},
		{force, `{}`, true},
		{calm, `{"force":true}`, true},
		{calm, `{"force":false}`, false},

		{word, `{"text":"no"}`, false},
		{word, `{"text":"a SECRET word"}`, true},
		{word, `{"text":"a ſecret word"}`, true}, // which has S as its capital
		{word, `{"text":"a se\u00adcret word"}`, true},
		{word, `{"text":"a\nsecret\nword"}`, true},
		{word, `{"text":"größer"}`, false},
		{word, `{"text":7}`, true},
		{word, `{"text":"` + strings.Repeat("s", maxCompared+1) + `"}`, true},

		{home, `{"file":"/home/me/project/a.txt"}`, false},
		{home, `{"file":"/home/me/project/ä 50%.txt"}`, false},
		{home, `{"file":"/home/me/project"}`, false},
		{home, `{"file":"/home/me/project/./a//b/"}`, false},
		{home, `{"file":"/home/.//me/project/a.txt"}`, false},
		{home, `{"file":"/home/me/project/..a"}`, false},
		{home, `{"file":"/home/me/projects/a.txt"}`, true},
		{home, `{"file":"/home/me"}`, true},
		{home, `{"file":"/Home/me/project/a"}`, true},
		{home, `{"file":"/home/me/project/../secret"}`, true},
		{home, `{"file":"/home/me/project/a/../b"}`, true},
		{home, `{"file":"/home/me/project/%2e%2e/secret"}`, true},
		{home, `{"file":"/home/me/project/.. "}`, true}, // which leads upward once it is stripped
		{home, `{"file":"/home/me/project/a/ ../..%20"}`, true},
		{home, `{"file":"/home/me/project/..%c2%a0"}`, true},
		{home, `{"file":"/home/me/project/ a .. "}`, false},
		{home, `{"file":"/home/me/project/..%2fsecret"}`, true},
		{home, `{"file":"/home/me/project/50%/%2e%2e/secret"}`, true}, // which Python's unquote decodes
		{home, `{"file":"/home/me/project/%252e%252e/secret"}`, true},
		{home, `{"file":"/home/me/project/%2525252525"}`, true}, // again and again
		{home, `{"file":"/home/me/project/%EF%BC%8E%EF%BC%8E/secret"}`, true},
		{home, `{"file":"/home/me/project/%c0%ae%c0%ae/secret"}`, true},
		{home, `{"file":"/home/me/project/100%25 sure.txt"}`, false},
		{home, `{"file":"/home/me/project/%"}`, false},
		{home, `{"file":"/home/me/project/..\\secret"}`, true},
		{home, `{"file":"/home/me/project/\uff0e\uff0e/secret"}`, true},
		{home, `{"file":"/home/me/project/\u2025/secret"}`, true},
		{home, `{"file":"/home/me/project/.\u200b./secret"}`, true},
		{home, `{"file":"/home/me/project/a\u0000b"}`, true},
		{home, `{"file":"project/a.txt"}`, true},
		{home, `{"file":"~/project/a.txt"}`, true},
		{home, `{"file":"file:///home/me/project/a.txt"}`, true},
		{home, `{"file":" /home/me/project/a.txt"}`, true},
		{home, `{"file":""}`, true},
		{home, `{"file":["/home/me/project/a.txt"]}`, true},
		{home, `{}`, true},
		{files, `{"files":["/a/x","/b/y"]}`, false},
		{files, `{"files":["/a/x","/c/y"]}`, true},
		{files, `{"files":["/a/x",5]}`, true},
		{`path = "file", op = "outside", value = "/"`, `{"file":"/etc/passwd"}`, false},
		{`path = "file", op = "outside", value = "/"`, `{"file":"/../etc/passwd"}`, true},

		{large, `{"n":9007199254740992}`, true},
		{large, `{"n":9007199254740993}`, false},
		{large, `{"n":9007199254740994}`, false},
		{tenth, `{"n":0.1}`, true},
		{tenth, `{"n":10e-2}`, true},
		{tenth, `{"n":0.1000000000000000000001}`, true}, // a float64 is 0.1
		{tenth, `{"n":0.11}`, false},
		{mixed, `{"n":-0}`, true},
		{mixed, `{"n":0e5}`, true},
		{mixed, `{"n":"0"}`, true},
		{mixed, `{"n":false}`, true},
		{mixed, `{"n":1}`, false},
		{mixed, `{"n":"1"}`, false},
		{mixed, `{"n":null}`, true},
		{other, `{"n":0.00}`, false},
		{other, `{"n":-0e5}`, false},
		{other, `{"n":0.01}`, true},
		{other, `{"n":1` + strings.Repeat("0", 1000) + `e-1000}`, false},
		{other, `{"n":1` + strings.Repeat("0", 100_000) + `e-100000}`, true}, // which strconv takes for infinite
		{first, `{"a":[{"b":2}]}`, false},
		{first, `{"a":[{"b":1}]}`, true},
		{first, `{"a":[]}`, true},
		{first, `{"a":{"0":{"b":2}}}`, false},
		{`path = "a.01", op = "==", value = 1`, `{"a":[2,2]}`, true},
		{exact, `{"a.b":{"c":2}}`, false},
		{exact, `{"a.b":{"c":1}}`, true},
		{exact, `{"a":{"b":{"c":2}}}`, true},
		{one, `{"n":10e-1}`, false},
		{one, `{"n":0.` + strings.Repeat("0", 100_000) + `1e100001}`, true}, // which it takes for 0
		{size, `{"größe":100}`, false},
		{size, `{"größe":101}`, true},
		{size, `{"GRÖßE":1}`, true},
	} {
		condition := strings.ReplaceAll(tt.condition, ", op", "\nop")
		condition = strings.ReplaceAll(condition, ", value", "\nvalue")
		if why := askedWhen(t, condition, tt.arguments); (why != "") != tt.asked {
			t.Errorf("%s with %.100s: asked %v: %q", tt.condition, tt.arguments, why != "", why)
		}
	}
}

// TestTextsThatAreTooLongAsk, also where the value is the same.
func TestTextsThatAreTooLongAsk(t *testing.T) {
	for written, asked := range map[int]bool{MaxWritten: false, MaxWritten + 1: true} {
		quoted := `"` + strings.Repeat("x", written-len(`""`)) + `"`
		why := askedWhen(t, "path = 'to'\nop = '!='\nvalue = "+quoted, `{"to":`+quoted+`}`)
		if (why != "") != asked {
			t.Errorf("%d bytes: asked %v: %q", written, why != "", why)
		}
	}
}

// TestConditionsSayWhyTheyAsk, in words that have none of the arguments.
func TestConditionsSayWhyTheyAsk(t *testing.T) {
	const over = "path = \"a.b\"\nop = \">\"\nvalue = 100"
	for arguments, want := range map[string]string{
		`{"a":{"b":101}}`:           `a.b > 100`,
		`{"a":{"b":"x"}}`:           `a.b > 100, but it is a string`,
		`{"a":{"b":null}}`:          `a.b > 100, but it is null`,
		`{"a":{}}`:                  `a.b > 100, but there is no "b"`,
		`{"a":[{"b":1}]}`:           `a.b > 100, but there is no "b"`,
		`{"a":7}`:                   `a.b > 100, but a number has no "b"`,
		`{}`:                        `a.b > 100, but there is no "a"`,
		`{"a":{"b":1,"B":2}}`:       `a.b > 100, but another name may be read as "b"`,
		`{"a":{"b":1e999}}`:         `a.b > 100, but it is too large or too small to be compared`,
		`{"a":{"b":{"c":[1,"x"]}}}`: `a.b > 100, but it is an object`,
	} {
		if why := askedWhen(t, over, arguments); why != want {
			t.Errorf("%s: %q, want %q", arguments, why, want)
		}
	}
	long := strings.Repeat("x", MaxWritten)
	for condition, tt := range map[string]struct{ argument, want string }{
		"op = 'outside'\nvalue = [\"/a b\", '/c\"d']": {"/e", `x.y outside ["/a b", "/c\"d"]`},
		"op = 'outside'\nvalue = '/a/./b/'":           {"/e", `x.y outside "/a/b"`},
		"op = '!='\nvalue = \"a\\u202eb\"":            {"c", `x.y != "a\u202eb"`},
		"op = '!='\nvalue = 'a'":                      {long, `x.y != "a"`}, // it is another, however long
		"op = '=='\nvalue = 'a'":                      {long, `x.y == "a", but it has more than 65536 bytes`},
	} {
		if why := askedWhen(t, "path = ['x.y']\n"+condition, `{"x.y":"`+tt.argument+`"}`); why != tt.want {
			t.Errorf("%s: %q, want %q", condition, why, tt.want)
		}
	}
}

func TestConditionThatIsWrongSaysWhere(t *testing.T) {
	for text, want := range map[string]string{
		"op = '=='\nvalue = 1":                                             `line 1, column 3: when: a condition needs path, op and value`,
		"path = 'a'\nvalue = 1":                                            `a condition needs path, op and value`,
		"path = 'a'\nop = '=='":                                            `a condition needs path, op and value`,
		"path = 'a'\nop = '='\nvalue = 1":                                  `line 3, column 1: [when] op: "=" is none of "==", "!=", "<", "<=", ">", ">=", "glob", "outside"`,
		"path = 'a'\nop = 1\nvalue = 1":                                    `line 3, column 1: [when] op: it must be a string, not a number`,
		"path = ''\nop = '=='\nvalue = 1":                                  `line 2, column 1: [when] path: "" does not lead to an argument`,
		"path = 'a..b'\nop = '=='\nvalue = 1":                              `line 2, column 1: [when] path: "a..b" does not lead to an argument`,
		"path = []\nop = '=='\nvalue = 1":                                  `line 2, column 1: [when] path: "" does not lead to an argument`,
		"path = '" + strings.Repeat("a.", 32) + "a'\nop = '=='\nvalue = 1": `line 2, column 1: [when] path: "a.a.`,
		"path = 7\nop = '=='\nvalue = 1":                                   `line 2, column 1: [when] path: it must be a string or a list of strings, not a number`,
		"path = 'a'\nop = '>'\nvalue = '1'":                                `line 4, column 1: [when] value: it must be a number for the op ">", not a string`,
		"path = 'a'\nop = '>='\nvalue = true":                              `line 4, column 1: [when] value: it must be a number for the op ">=", not true`,
		"path = 'a'\nop = '<'\nvalue = [1]":                                `line 4, column 1: [when] value: it must be one value for the op "<", not a list`,
		"path = 'a'\nop = '=='\nvalue = []":                                `line 4, column 1: [when] value: it is an empty list`,
		"path = 'a'\nop = '=='\nvalue = [[1]]":                             `line 4, column 1: [when] value: it must be a string, a number, true or false, not a list`,
		"path = 'a'\nop = '=='\nvalue = nan":                               `line 4, column 1: [when] value: it must be a string, a number, true or false, not inf or nan`,
		"path = 'a'\nop = '<'\nvalue = inf":                                `line 4, column 1: [when] value: it must be a string, a number, true or false, not inf or nan`,
		"path = 'a'\nop = '<'\nvalue = 1e305":                              `line 4, column 1: [when] value: 1e+305 cannot be compared`,
		"path = 'a'\nop = '=='\nvalue = 2026-01-01":                        `line 4, column 1: [when] value: it must be a string, a number, true or false, not a date`,
		"path = 'a'\nop = 'glob'\nvalue = '[a]'":                           `line 4, column 1: [when] value: the glob "[a]" is not understood`,
		"path = 'a'\nop = 'glob'\nvalue = 1":                               `line 4, column 1: [when] value: it must be a string for the op "glob", not a number`,
		"path = 'a'\nop = 'outside'\nvalue = 1":                            `line 4, column 1: [when] value: it must be a string for the op "outside", not a number`,
		"path = 'a'\nop = 'outside'\nvalue = 'project'":                    `line 4, column 1: [when] value: "project" is not the full path of a folder`,
		"path = 'a'\nop = 'outside'\nvalue = '/a/../b'":                    `line 4, column 1: [when] value: "/a/../b" is not the full path of a folder`,
		"path = 'a'\nop = 'outside'\nvalue = ['/a', '~/']":                 `line 4, column 1: [when] value: "~/" is not the full path of a folder`,
		"path = 'a'\nop = '=='\nvale = 1":                                  `line 4, column 1: [when] vale: there is no such key; the keys are path, op, value`,
	} {
		_, err := parseText(t, "[[when]]\n"+text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"when = 'amount > 100'": `line 1, column 1: when: write it as [[when]], once for each`,
		"[when]\npath = 'a'":    `line 1, column 2: when: write it as [[when]]`,
		"when = [1]":            `line 1, column 9: when: it must be a table, not a number`,
		strings.Repeat("[[when]]\npath='a'\nop='=='\nvalue=1\n", 101): `line 1, column 3: when: it is there 101 times; the most is 100`,
	} {
		if _, err := parseText(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v\nwant %s", text, err, want)
		}
	}
	if _, err := parseText(t, "when = [{path = 'a', op = '==', value = 1}]"); err != nil {
		t.Errorf("as inline tables: %v", err)
	}
}

// FuzzWhen checks that a condition decides about any arguments, soon and always alike, that it
// asks where the argument is missing, and that < and >= never both let one pass.
func FuzzWhen(f *testing.F) {
	for _, s := range []string{`{"a":[{"b":100}]}`, `{"a":1e999999999}`, `{"a":-0}`, `{"A":1}`, `{"a":"x"}`, `{"a":null}`, `{"b":1}`, `{"a":100.0}`, `{"a":0.1e3,"\u0061\u200b":1}`} {
		f.Add(s, "a", int64(100))
		f.Add(s, "a.0.b", int64(-1))
		f.Add(s, "*", int64(0))
	}
	f.Fuzz(func(t *testing.T, text, path string, limit int64) {
		arguments, err := rawjson.Canonical([]byte(text))
		if err != nil || arguments[0] != '{' {
			return
		}
		ask := func(op string, value any) answer {
			var w Condition
			written, err := json2.Marshal(map[string]any{"path": path, "op": op, "value": value})
			if err != nil || json2.Unmarshal(written, &w) != nil {
				t.Skip()
			}
			a := w.find(t.Context(), arguments, w.path)
			if again := w.find(t.Context(), arguments, w.path); again != a {
				t.Errorf("%s is %v, and then %v", w.text, a, again)
			}
			return a
		}
		for _, not := range [][2]string{{"<", ">="}, {"<=", ">"}, {"==", "!="}} {
			one, other := ask(not[0], limit), ask(not[1], limit)
			if one.passes && other.passes && len(arguments) > 2 && !strings.Contains(path, "*") {
				t.Errorf("neither %s nor %s %d asks about %s", not[0], not[1], limit, arguments)
			}
		}
		var all map[string]json.RawMessage
		if err := json.Unmarshal(arguments, &all); err != nil {
			t.Fatal(err)
		}
		raw, there := all[path]
		var n json.Number
		if a := ask("==", limit); !strings.ContainsAny(path, ".*") && (!there || json.Unmarshal(raw, &n) != nil) && a.passes {
			t.Errorf("does not ask about %s at %q", arguments, path)
		}
		ask("outside", "/a")
		ask("glob", "*a*b")
	})
}

func TestDecimalsCompareExactly(t *testing.T) {
	inOrder := []string{"-1e299", "-100.5", "-100", "-99.99", "-1e-299", "0", "1e-299", "0.099", "0.1", "0.10000000000000000000000001", "9", "10", "10.5", "1e2", "1e299"}
	for i, a := range inOrder {
		for j, b := range inOrder {
			x, ok := parseDecimal(a)
			y, also := parseDecimal(b)
			if !ok || !also {
				t.Fatal(a, b)
			}
			if got, want := x.compare(y), min(max(i-j, -1), 1); got != want {
				t.Errorf("%s and %s compare as %d, want %d", a, b, got, want)
			}
		}
	}
	for _, s := range []string{"100", "1e2", "1E+2", "10000e-2", "100.000", "0.1e3", "0.0000000001e12"} {
		if d, ok := parseDecimal(s); !ok || d.digits != "1" || d.exponent != 3 {
			t.Errorf("%s is %+v", s, d)
		}
	}
}

// TestZeroValuesAsk: a condition that was not read, and an answer that was not found.
func TestZeroValuesAsk(t *testing.T) {
	var a answer
	if _, asks := (Condition{}).Check(t.Context(), json.RawMessage(`{"amount":1}`)); !asks || a.passes {
		t.Error("a call passes unasked")
	}
}
