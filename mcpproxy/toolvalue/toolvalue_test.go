package toolvalue_test

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/toolvalue"
)

// TestValuesAreThoseOfPython: test_units.py holds the Python rule to the same cases.
func TestValuesAreThoseOfPython(t *testing.T) {
	text, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name        string
		Answer      json.RawMessage
		Value       json.RawMessage
		Attachments []json.RawMessage
		Error       string
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, tt := range cases {
		got, err := toolvalue.Of(t.Context(), tt.Answer)
		var failed *toolvalue.ToolError
		switch {
		case tt.Error != "":
			if !errors.As(err, &failed) || failed.Text != tt.Error {
				t.Errorf("%s: the error is %v, want %s", tt.Name, err, tt.Error)
			}
		case err != nil || !same(t, got.JSON, tt.Value):
			t.Errorf("%s: %s, %v; want %s", tt.Name, got.JSON, err, tt.Value)
		case len(got.Attachments) != len(tt.Attachments):
			t.Errorf("%s: %d attachments", tt.Name, len(got.Attachments))
		}
		for i := range min(len(got.Attachments), len(tt.Attachments)) {
			if !same(t, got.Attachments[i], tt.Attachments[i]) {
				t.Errorf("%s: attachment %s", tt.Name, got.Attachments[i])
			}
		}
	}
}

func same(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var left, right any
	if err := errors.Join(json.Unmarshal(a, &left), json.Unmarshal(b, &right)); err != nil {
		t.Errorf("%s, %s: %v", a, b, err)
	}
	return reflect.DeepEqual(left, right)
}

// TestLargeNumbersStay: the value is what the server wrote.
func TestLargeNumbersStay(t *testing.T) {
	v, err := toolvalue.Of(t.Context(), json.RawMessage(`{"structuredContent": {"result": 12345678901234567890123}}`))
	if err != nil || string(v.JSON) != "12345678901234567890123" {
		t.Errorf("%s, %v", v.JSON, err)
	}
}

// TestAResourceWithBytesStaysWhole, also if it has a text beside them.
func TestAResourceWithBytesStaysWhole(t *testing.T) {
	const resource = `{"uri":"x:/a","text":"a","blob":"AAAA"}`
	v, err := toolvalue.Of(t.Context(), json.RawMessage(`{"content":[{"type":"resource","resource":`+resource+`}]}`))
	if err != nil || string(v.JSON) != resource {
		t.Errorf("%s, %v", v.JSON, err)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, answer := range []string{"", "[]", `"text"`, `{"content": [`} {
		if v, err := toolvalue.Of(t.Context(), json.RawMessage(answer)); err == nil {
			t.Errorf("%s: %s", answer, v.JSON)
		}
	}
}
