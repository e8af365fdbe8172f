package elicitation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestFormsNestSoDeep(t *testing.T) {
	lists := func(depth int, inner string) string {
		return strings.Repeat("[", depth) + inner + strings.Repeat("]", depth)
	}
	objects := func(depth int, inner string) string {
		return strings.Repeat(`{"a":`, depth) + inner + strings.Repeat("}", depth)
	}
	for _, tt := range []struct {
		most string
		more []string
	}{
		{lists(maxDepth, "1"), []string{lists(maxDepth+1, "1"), lists(maxDepth+1, "true")}},
		{lists(maxDepth+1, ""), []string{lists(maxDepth+2, "")}},
		{lists(maxDepth, "{}"), []string{lists(maxDepth+1, "{}"), lists(maxDepth, `{"a":1}`)}},
		{objects(maxDepth, "[]"), []string{objects(maxDepth, "[1]"), objects(maxDepth, "[[]]")}},
	} {
		if got, err := cleanSchema(json.RawMessage(tt.most)); err != nil || string(got) != tt.most {
			t.Errorf("%s: %s, %v", tt.most, got, err)
		}
		for _, more := range tt.more {
			if got, err := cleanSchema(json.RawMessage(more)); err == nil || err.Error() != "it is nested too deeply" {
				t.Errorf("%s: %s, %v", more, got, err)
			}
		}
	}
}

func TestAFormIsOneValue(t *testing.T) {
	for _, schema := range []string{"{} {}", "1 2", `{}"a"`} {
		if got, err := cleanSchema(json.RawMessage(schema)); err == nil || err.Error() != "it is not one JSON value" {
			t.Errorf("%s: %s, %v", schema, got, err)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	f, err := readForm(json.RawMessage(`{"type":"object","properties":{"s":{"type":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	answer := func(size int) json.RawMessage {
		const begin, end = `{"s":"`, `"}`
		return json.RawMessage(begin + strings.Repeat("x", size-len(begin+end)) + end)
	}
	if got, err := f.check(answer(maxSchema)); err != nil || len(got) != 1 {
		t.Errorf("the longest: %d fields, %v", len(got), err)
	}
	want := fmt.Sprintf("it is longer than %d KiB", maxSchema>>10)
	if got, err := f.check(answer(maxSchema + 1)); err == nil || err.Error() != want {
		t.Errorf("one more: %d fields, %v, want %s", len(got), err, want)
	}
}
