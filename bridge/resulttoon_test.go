package bridge

import (
	"strings"
	"testing"
)

// TestTOONGivesWayToShorterJSON: the mode is there to save tokens.
func TestTOONGivesWayToShorterJSON(t *testing.T) {
	mixed := []any{[]any{1.0, map[string]any{"a": []any{true, map[string]any{}}}}, []any{map[string]any{"b": 1.0}, "x"}}
	var deep any = 1
	for range 200 {
		deep = []any{deep}
	}
	for name, c := range map[string]struct {
		value map[string]any
		want  string
	}{
		"a table":     {map[string]any{"rows": []any{map[string]any{"id": 1.0, "ok": true}, map[string]any{"id": 2.0, "ok": false}}}, "```toon\nrows[2]{id,ok}:\n  1,true\n  2,false\n```"},
		"mixed lists": {map[string]any{"rows": mixed}, "```json\n{\"rows\":[[1,{\"a\":[true,{}]}],[{\"b\":1},\"x\"]]}\n```"},
		"not TOON":    {map[string]any{"deep": deep}, "```json\n{\"deep\":" + strings.Repeat("[", 200) + "1" + strings.Repeat("]", 200) + "}\n```"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := toonOrJSON(c.value, c.value); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}
