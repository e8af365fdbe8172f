package catalog

import (
	"encoding/json"
	"testing"
)

// TestShownSchemaHidesNoCharacter, in names, values and lists, and is the same otherwise.
func TestShownSchemaHidesNoCharacter(t *testing.T) {
	for schema, want := range map[string]string{
		`{"a": 1.50, "b":["x"]}`: `{"a": 1.50, "b":["x"]}`,
		"{\"a\u200b\": {\"enum\":[\"\u202ex\", \"ü\"]}, \"b\":\"\\u200b\"}": `{"a\\u200b": {"enum":["\\u202ex", "ü"]}, "b":"\\u200b"}`,
	} {
		if got := string((Tool{InputSchema: json.RawMessage(schema)}).ShownSchema()); got != want {
			t.Errorf("%q is shown as %s, want %s", schema, got, want)
		}
	}
}
