package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy/signature"
	"github.com/toolcell/toolcell/mcpproxy/toolvalue"
)

// TestArgumentsOfACall in the forms that people type; a value has the type that the tool
// wants.
func TestArgumentsOfACall(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.json")
	if err := os.WriteFile(file, []byte("\xef\xbb\xbf{\"n\": 1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large.json")
	if err := errors.Join(os.WriteFile(large, []byte("{}"), 0o600), os.Truncate(large, maxArguments+1)); err != nil {
		t.Fatal(err)
	}
	schema := json.RawMessage(`{"properties":{"open_only":{"type":"boolean"},"n":{"type":"integer"},"x":{"type":["number","null"]},"s":{"type":"string"},
		"tags":{"type":"array"},"who":{"anyOf":[{"type":"string"},{"type":"null"}]},"id":{"anyOf":[{"type":"integer"},{"type":"string"}]},"unit":{"enum":["c","f"]},"o":{"type":"object"}}}`)
	for _, tt := range []struct {
		given []string
		want  string
	}{
		{nil, `{}`},
		{[]string{`{"a": [1]}`}, `{"a": [1]}`},
		{[]string{`{"q": "a=b"}`}, `{"q": "a=b"}`},
		{[]string{"-"}, `{"from": "stdin"}`},
		{[]string{"@" + file}, "{\"n\": 1}\n"},
		{[]string{"open_only=true", "n=5", "s=5"}, `{"open_only":true,"n":5,"s":"5"}`},
		{[]string{"s=true", "x=2.5"}, `{"s":"true","x":2.5}`},
		{[]string{"x=null", "who=null"}, `{"x":null,"who":null}`},
		{[]string{"who=5", "id=5", "unit=c"}, `{"who":"5","id":5,"unit":"c"}`},
		{[]string{"id=5a", `s="quoted"`, "s2="}, `{"id":"5a","s":"\"quoted\"","s2":""}`},
		{[]string{`tags=["a","b"]`, `o={"k":1}`}, `{"tags":["a","b"],"o":{"k":1}}`},
		{[]string{"n=many", "open_only=yes"}, `{"n":"many","open_only":"yes"}`}, // the check says what is wrong
		{[]string{"unknown=5", "text=hello world=1"}, `{"unknown":5,"text":"hello world=1"}`},
		{[]string{"n=-5"}, `{"n":-5}`},
	} {
		object, typed, err := readCallArguments(tt.given, strings.NewReader(`{"from": "stdin"}`))
		named, parseErr := signature.ParseArguments(object)
		if typed {
			named = signature.New(schema, nil).Read(named)
		}
		got, want := map[string]string{}, map[string]json.RawMessage{}
		for _, a := range named {
			got[a.Name] = string(a.Value)
		}
		err = errors.Join(err, parseErr, json.Unmarshal([]byte(tt.want), &want))
		if err != nil || !maps.EqualFunc(got, want, func(a string, b json.RawMessage) bool { return a == string(b) }) {
			t.Errorf("%q: %s, %v\nwant %s", tt.given, got, err, tt.want)
		}
	}
	for _, tt := range []struct {
		given []string
		want  string
	}{
		{[]string{"b"}, "b is not a JSON object; give a JSON object, such as"},
		{[]string{"[1]"}, "[1] is not a JSON object; give a JSON object, such as"},
		{[]string{"null"}, "null is not a JSON object"},
		{[]string{""}, "is not a JSON object"},
		{[]string{"@" + large}, "there are more than 16 MiB"},
		{[]string{"@no-such-file"}, "reading the arguments: open no-such-file"},
		{[]string{"a=1", "b"}, `"b" is no argument`},
		{[]string{"a=1", "a=2"}, `"a" is given twice`},
		{[]string{`{"a": 1}`, "b=2"}, "is no argument"},
	} {
		_, _, err := readCallArguments(tt.given, strings.NewReader(""))
		var exit *console.ExitError
		if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.As(err, &exit) || exit.Code != console.ExitUsage {
			t.Errorf("%q: %v, want %s", tt.given, err, tt.want)
		}
	}
}

// TestPicturesOfAnAnswerAreKeptNotPrinted: base64 of some kilobytes is nothing to read.
func TestPicturesOfAnAnswerAreKeptNotPrinted(t *testing.T) {
	answer := json.RawMessage(`{"content":[{"type":"text","text":"here"},{"type":"image","mimeType":"image/png","data":"iVBORw0KGgo="},
		{"type":"resource","resource":{"uri":"x://y","mimeType":"application/pdf","blob":"JVBERg=="}}]}`)
	value, err := toolvalue.Of(t.Context(), answer)
	if err != nil {
		t.Fatal(err)
	}
	const want = `["here","<image/png of 9 bytes; --out FILE keeps it>","<application/pdf of 6 bytes; --out FILE keeps it>"]`
	if got := string(seenValue(value.JSON)); got != want {
		t.Errorf("printed is %s", got)
	}
	dir := t.TempDir()
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	s := &console.Streams{Err: stderr}
	if err := writeAnswer(s, filepath.Join(dir, "a.png"), value); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"a.png": "\x89PNG\r\n\x1a\n", "a-2.png": "%PDF"} {
		if got, err := os.ReadFile(filepath.Join(dir, file)); !bytes.Equal(got, []byte(want)) {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	value, _ = toolvalue.Of(t.Context(), json.RawMessage(`{"content":[{"type":"text","text":"all text"}]}`))
	if err := writeAnswer(s, filepath.Join(dir, "a.txt"), value); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(got) != "all text\n" {
		t.Errorf("the text is %q", got)
	}
	if err := writeAnswer(s, filepath.Join(dir, "no/a.txt"), value); err == nil || !strings.HasPrefix(err.Error(), "cannot write ") || strings.Count(err.Error(), "a.txt") != 1 {
		t.Errorf("without a folder: %v", err)
	}
}
