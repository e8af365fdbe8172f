package console

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

func TestJSONHasNoControlCharacters(t *testing.T) {
	want := []map[string]string{{"text": "\x1b[2J\u009b2J\x7f\u0085é\u00a0<\n"}}
	var b bytes.Buffer
	if err := writeJSON(&b, want); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(b.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
		t.Errorf("printed %q", b.String())
	}
	var got []map[string]string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got[0]["text"] != want[0]["text"] {
		t.Errorf("%q is read as %q, %v", b.String(), got, err)
	}
}
