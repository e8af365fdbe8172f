package bridge

import (
	"testing"

	"github.com/toolcell/toolcell/bridge/toon"
)

// TestTOONGivesWayToShorterJSON: the mode is there to save tokens.
func TestTOONGivesWayToShorterJSON(t *testing.T) {
	mixed := []any{[]any{1.0, map[string]any{"a": []any{true, map[string]any{}}}}, []any{map[string]any{"b": 1.0}, "x"}}
	for name, c := range map[string]struct {
		fields toon.Object
		want   string
	}{
		"a table":     {toon.Object{{Key: "rows", Value: []any{map[string]any{"id": 1.0, "ok": true}, map[string]any{"id": 2.0, "ok": false}}}}, "```toon\nrows[2]{id,ok}:\n  1,true\n  2,false\n```"},
		"mixed lists": {toon.Object{{Key: "rows", Value: mixed}}, "```json\n{\"rows\":[[1,{\"a\":[true,{}]}],[{\"b\":1},\"x\"]]}\n```"},
		"not TOON":    {toon.Object{{Key: "text", Value: "a\xff"}}, "```json\n{\"text\":\"a\ufffd\"}\n```"},
	} {
		t.Run(name, func(t *testing.T) {
			asMap := map[string]any{}
			for _, f := range c.fields {
				asMap[f.Key] = f.Value
			}
			if got := toonOrJSON(c.fields, asMap); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}
