package toon

import (
	"encoding/json"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := append(boundtest.Pick(boundtest.JSON("", ""), "deep items", "a wide object", "many empty lists", "many small objects", "long keys", "escapes", "a huge number"),
		boundtest.Counted("a keyed table", "{", `"k%d":{"a":{"b":1},"c":"x"}`, ",", "}"),
		boundtest.Repeated("a table", `[{"a":1,"b":{"c":2}}`, `,{"b":{"c":1},"a":"x"}`, "]"),
		boundtest.Repeated("almost a table", `[{"a":1,"b":2}`, `,{"a":1,"b":2}`, `,{"a":1}]`),
		boundtest.Repeated("deep rows", `[0`, `,[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]`, "]"),
	)
	boundtest.Run(t, boundtest.Parser{Row: "result as TOON", Shapes: shapes, Parse: func(text []byte) error {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			return err
		}
		_, err := Marshal(v)
		return err
	}})
}
