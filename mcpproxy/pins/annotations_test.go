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
		`{"readOnlyHint":true`:   {},
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

func TestHintsCountAsThePinHasThem(t *testing.T) {
	none, reads, destroys := &Version{}, &Version{Hints: Hints{ReadOnly: true}}, &Version{Hints: Hints{ReadOnly: true, Destructive: true}}
	for name, tt := range map[string]struct {
		tool Tool
		want bool // unaccepted
	}{
		"unchanged":          {Tool{Pinned: reads}, false},
		"still":              {Tool{Pinned: reads, Seen: reads}, false},
		"taken back":         {Tool{Pinned: reads, Seen: none}, false},
		"added":              {Tool{Pinned: none, Seen: reads}, true},
		"of a new tool":      {Tool{Seen: reads}, true},
		"accepted":           {Tool{Pinned: none, Seen: reads, ReadsOnly: true}, false},
		"destroys meanwhile": {Tool{Pinned: reads, Seen: destroys}, true},
		"destroyed before":   {Tool{Pinned: destroys, Seen: reads}, false},
		"always destroyed":   {Tool{Pinned: destroys, Seen: destroys}, false},
	} {
		if got := tt.tool.HintUnaccepted(); got != tt.want {
			t.Errorf("%s: unaccepted: %t, want %t", name, got, tt.want)
		}
	}
}
