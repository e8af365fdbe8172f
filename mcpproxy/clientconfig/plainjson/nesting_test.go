package plainjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig/plainjson"
)

// TestOnlyNestingCountsAsDeep: brackets in texts and comments are none, nor do those that were
// closed count.
func TestOnlyNestingCountsAsDeep(t *testing.T) {
	many := strings.Repeat("[", 3000)
	for name, text := range map[string]string{
		"in a string":            `["` + many + `"]`,
		"after a quote in one":   `["\"` + many + `"]`,
		"after a backslash":      `["\\", "` + many + `"]`,
		"in a comment":           "// " + many + "\n[1]",
		"in a comment at an end": "[1] // " + many,
		"in a long comment":      "/* " + many + " */ [1]",
		"lists in a row":         "[[]" + strings.Repeat(",[]", 3000) + "]",
		"objects in a row":       "[{}" + strings.Repeat(",{}", 3000) + "]",
	} {
		got, err := plainjson.Convert("a.json", []byte(text))
		if err != nil || !json.Valid(got) {
			t.Errorf("%s: %.100q, %v", name, got, err)
		}
	}
	for name, text := range map[string]string{
		"after a comment":                  "// [\n" + many,
		"after a long comment":             "/* [ */" + many,
		"after a string":                   `["\\",` + many,
		"after closing brackets":           strings.Repeat("]", 3000) + many,
		"after objects that were not open": strings.Repeat("}", 3000) + many,
	} {
		if got, err := plainjson.Convert("a.json", []byte(text)); err == nil || !strings.Contains(err.Error(), "nested more than 1000 deep") {
			t.Errorf("%s: %.100q, %v", name, got, err)
		}
	}
	got, err := plainjson.Convert("a.json", []byte("[1] /* "+many))
	if err == nil || !strings.Contains(err.Error(), "is not JSON") || strings.Contains(err.Error(), "nested") {
		t.Errorf("a comment that does not end: %.100q, %v", got, err)
	}
}

// TestPlainJSONMayBeLarge: that of Claude Code has the history of all projects.
func TestPlainJSONMayBeLarge(t *testing.T) {
	text := "[1" + strings.Repeat(",1", 300_000) + "]"
	if got, err := plainjson.Convert("a.json", []byte(text)); err != nil || string(got) != text {
		t.Errorf("%.100s, %v", got, err)
	}
}
