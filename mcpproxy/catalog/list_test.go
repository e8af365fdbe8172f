package catalog

import (
	"encoding/json"
	"io"
	"log/slog"
	"testing"
)

func TestFindFoldTakesNamesInAnyCase(t *testing.T) {
	b := NewBuilder(slog.New(slog.NewTextHandler(io.Discard, nil)))
	b.Add([]json.RawMessage{[]byte(`{"name":"Create-Issue"}`), []byte(`{"name":"echo"}`), []byte(`{"name":"Echo"}`)})
	l := newList(b.Definitions(), toolFilter{})
	for key, want := range map[string]string{
		"create-issue": "Create-Issue", "CREATE_ISSUE": "Create-Issue", "echo": "echo", "Echo": "Echo", "ECHO": "echo", "nope": "",
	} {
		if got, ok := l.FindFold(key); got.Name != want || ok != (want != "") {
			t.Errorf("%q finds %q, %v", key, got.Name, ok)
		}
	}
}
