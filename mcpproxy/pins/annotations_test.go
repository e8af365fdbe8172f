package pins

import (
	"encoding/json"
	"testing"
)

// TestOnlyPlainHintsCount: what readers of JSON take for different things claims that the
// tool writes.
func TestOnlyPlainHintsCount(t *testing.T) {
	for text, want := range map[string]Hints{
		``:                       {},
		`[]`:                     {},
		`{"readOnlyHint":true}`:  {ReadOnly: true},
		`{"readOnlyHint":false}`: {},
		`{"readOnlyHint":null}`:  {},
		`{"readOnlyHint":1}`:     {},
		`{"ReadOnlyHint":true}`:  {},
		`{"readOnlyHint":true,"readOnlyHint":true}`:      {},
		`{"readOnlyHint":true,"READONLYHINT":false}`:     {},
		`{"readOnlyHint":true,"destructiveHint":true}`:   {ReadOnly: true, Destructive: true},
		`{"readOnlyHint":true,"destructiveHint":"true"}`: {Destructive: true},
	} {
		if got := ReadHints(json.RawMessage(text)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
