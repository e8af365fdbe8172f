package catalog

import (
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

func TestFindFoldTakesNamesInAnyCase(t *testing.T) {
	b := NewBuilder(slog.New(slog.NewTextHandler(io.Discard, nil)))
	add(t, b, []json.RawMessage{[]byte(`{"name":"Create-Issue"}`), []byte(`{"name":"echo"}`), []byte(`{"name":"Echo"}`)})
	l := newList(b.Definitions(), toolFilter{})
	for key, want := range map[string]string{
		"create-issue": "Create-Issue", "CREATE_ISSUE": "Create-Issue", "echo": "echo", "Echo": "Echo", "ECHO": "echo", "nope": "",
	} {
		if got, ok := l.FindFold(key); got.Name != want || ok != (want != "") {
			t.Errorf("%q finds %q, %v", key, got.Name, ok)
		}
	}
}

// TestToolsThatNeedTasksAreNotListed, and a call of one is told why.
func TestToolsThatNeedTasksAreNotListed(t *testing.T) {
	l := newList(definitionsOf(t,
		`{"name":"only-task","execution":{"taskSupport":"required"}}`, `{"name":"either","execution":{"taskSupport":"optional"}}`,
		`{"name":"never","execution":{"taskSupport":"forbidden"}}`, `{"name":"odd","execution":"required"}`), toolFilter{})
	var names []string
	for _, tool := range l.All() {
		names = append(names, tool.Name)
	}
	if want := []string{"either", "never", "odd"}; !slices.Equal(names, want) {
		t.Errorf("listed: %q, want %q", names, want)
	}
	for _, name := range []string{"only-task", "only_task"} {
		if err := l.Missing("s", name); !strings.Contains(err.Error(), `tool "only-task" of server "s" cannot be used: it runs only as a task of MCP`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchemasKeepTheirDialect, which says how the rest of them is to be read.
func TestSchemasKeepTheirDialect(t *testing.T) {
	const sent = `{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"a": {"const": 1.50}}}`
	const want = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"const":1.50}}}`
	l := newList(definitionsOf(t, `{"name":"f","inputSchema":`+sent+`,"outputSchema":`+sent+`}`), toolFilter{})
	if got := l.At(0); string(got.InputSchema) != want || string(got.OutputSchema) != want {
		t.Errorf("%s\n%s", got.InputSchema, got.OutputSchema)
	}
}
