package toml

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"reflect"
	"strings"
	"testing"
)

type word struct{ text string }

func (w *word) UnmarshalText(text []byte) error {
	if strings.Contains(string(text), "!") {
		return errors.New("it has a ! in it")
	}
	w.text = string(text)
	return nil
}

type document struct {
	Words  Strings[word] `json:"words"`
	Count  int           `json:"count"`
	Share  float64       `json:"share"`
	Switch *bool         `json:"switch"`
	List   []struct {
		X word `json:"x"`
	} `json:"list"`
	Tables Table[word, document] `json:"tables"`
}

func TestUnmarshalStoresWhatTheTextSays(t *testing.T) {
	yes := true
	w := func(s string) word { return word{s} }
	for text, want := range map[string]document{
		"":                              {},
		"words = []":                    {Words: Strings[word]{}},
		"words = 'a'\nswitch = true":    {Words: Strings[word]{w("a")}, Switch: &yes},
		"words = ['a', 'b']\ncount = 3": {Words: Strings[word]{w("a"), w("b")}, Count: 3},
		"share = 2.0":                   {Share: 2},
		"share = 1.5e-3":                {Share: 0.0015},
		"[tables.z]\ncount = 1\n[tables.b.tables.c]\n[tables]\na.count = 2": {Tables: Table[word, document]{
			{w("z"), document{Count: 1}}, {w("b"), document{Tables: Table[word, document]{{Key: w("c")}}}}, {w("a"), document{Count: 2}},
		}},
	} {
		var got document
		if err := Unmarshal(t.Context(), []byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestValuesThatAreWrongSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		"words = 1":                              "line 1, column 1: words: it must be a string or a list of strings, not a number",
		"words = true":                           "line 1, column 1: words: it must be a string or a list of strings, not true",
		"[words]":                                "line 1, column 2: words: it must be a string or a list of strings, not a table",
		"[[words]]":                              "line 1, column 3: words: it must be a string, not a table",
		"words.x = 'a'":                          "line 1, column 1: words: it must be a string or a list of strings, not a table",
		"words = 2026-01-31":                     "line 1, column 1: words: it must be a string or a list of strings, not a date",
		"words = inf":                            "not inf or nan",
		"words = 'a!'":                           "line 1, column 1: words: it has a ! in it",
		"words = [\n 'a',\n 'b!',\n]":            "line 3, column 2: words: it has a ! in it",
		"words = ['a', 7]":                       "line 1, column 15: words: it must be a string, not a number",
		"words = ['a', ['b']]":                   "line 1, column 10: words: it must be a string, not a list",
		"words = ['a', {b = 1}]":                 "line 1, column 15: words: it must be a string, not a table",
		"Words = 'a'":                            "line 1, column 1: Words: there is no such key; the keys are words, count, share, switch, list, tables",
		"words = 'a'\nWORDS = 'b'":               "line 2, column 1: WORDS: there is no such key",
		"\"wor ds\" = 'a'":                       "line 1, column 1: \"wor ds\": there is no such key",
		"count = 1.0":                            "line 1, column 1: count: it must be a whole number, not a number with a decimal point",
		"count = 1e3":                            "line 1, column 1: count: it must be a whole number, not a number with a decimal point",
		"count = {}":                             "line 1, column 1: count: it must be a whole number, not a table",
		"count = '1'":                            "line 1, column 1: count: it must be a whole number, not a string",
		"switch = 'on'":                          "line 1, column 1: switch: it must be true or false, not a string",
		"list = 1":                               "line 1, column 1: list: write it as [[list]], once for each",
		"[list]":                                 "line 1, column 2: list: write it as [[list]], once for each",
		"list.x = 'a'":                           "line 1, column 1: list: write it as [[list]], once for each",
		"list = [1]":                             "line 1, column 9: list: it must be a table, not a number",
		"[[list]]\n[[list]]\nx = 1":              "line 3, column 1: [list] x: it must be a string, not a number",
		"[[list]]\n[[list]]\ny.z = 1":            "line 3, column 1: [list] y: there is no such key; the keys are x",
		"tables = 1":                             "line 1, column 1: tables: it must be a table, not a number",
		"[[tables]]":                             "line 1, column 3: tables: it must be a table, not a list",
		"[tables]\na = 1":                        "line 2, column 1: [tables] a: it must be a table, not a number",
		"[tables.'a!']":                          "line 1, column 9: [tables] \"a!\": it has a ! in it",
		"[tables.'a.b/c~']\nwords = 1":           "line 2, column 1: [tables.\"a.b/c~\"] words: it must be",
		"[tables.a]\ntables = {b = {n=1}}":       "line 2, column 16: [tables.a.tables.b] n: there is no such key",
		strings.Repeat("k", 100) + "=1":          "line 1, column 1: \"" + strings.Repeat("k", 80) + "…\": there is no such key",
		"list = " + strings.Repeat("[", 250_001): "line 1, column 250007: it has too many keys and values",
		"words = ":                               "line 1, column 8: expected a value",
	} {
		err := Unmarshal(t.Context(), []byte(text), &document{})
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

type refusal struct{}

func (refusal) UnmarshalJSONFrom(*jsontext.Decoder) error { return errors.New("it is not wanted") }

func TestErrorsOfAllTheText(t *testing.T) {
	if err := Unmarshal(t.Context(), []byte("x = 1"), new(refusal)); err == nil || err.Error() != "line 1, column 1: it is not wanted" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	for _, text := range []string{"x = [" + strings.Repeat("1,", 2000) + "]", strings.Repeat("[[x]]\n", 2000)} {
		if err := Unmarshal(ctx, []byte(text), new(document)); !errors.Is(err, stopped) {
			t.Error(err)
		}
	}
}

func TestUnmarshalPassesOverOtherKeysIfItIsTold(t *testing.T) {
	var got document
	if err := Unmarshal(t.Context(), []byte("count = 1\nother = 2026-01-31"), &got, json.RejectUnknownMembers(false)); err != nil || got.Count != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
