package mcpproxy

import (
	"encoding/json"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestNoArgumentsAreTheEmptyObject, however they are left out.
func TestNoArgumentsAreTheEmptyObject(t *testing.T) {
	for _, none := range []string{"", " \n", "null", "\tnull\r\n", "{}", " { } "} {
		if got, err := CanonicalArguments(t.Context(), json.RawMessage(none)); err != nil || string(got) != "{}" {
			t.Errorf("%q: %s, %v", none, got, err)
		}
	}
	for _, other := range []string{"[]", `"{}"`, "7", "nul", "{", "{} null"} {
		_, err := CanonicalArguments(t.Context(), json.RawMessage(other))
		mcptest.WantError(t, err, "the arguments are not a JSON object")
	}
}
