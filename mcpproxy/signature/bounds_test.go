package signature

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.JSON("", "")
	for _, before := range []string{`{"type":"object","properties":{"a":`, `{"type":"object","properties":{"a":{"enum":`, `{"anyOf":`, `{"$defs":{"d":{"anyOf":[{"$ref":"#/$defs/d"},{"$ref":"#"}]}},"properties":{"a":{"$ref":"#/$defs/d"},"b":`} {
		after := "}}"
		switch before[:4] {
		case `{"an`:
			after = "}"
		case `{"$d`:
			after = "}}"
		}
		for _, s := range boundtest.JSON(before, after+"}"[:len(before)/48%2]) {
			shapes = append(shapes, boundtest.Shape{Name: s.Name + " in " + before[:min(14, len(before))], Make: s.Make})
		}
	}
	// often is a schema with one part, and parameters that refer to it in a share of its bytes.
	often := func(name string, share int, part boundtest.Shape) boundtest.Shape {
		return boundtest.Shape{Name: name, Make: func(n int) []byte {
			const before = `{"$defs":{"d":`
			refs := boundtest.Counted("", `},"properties":{`, `"p%d":{"$ref":"#/$defs/d"}`, ",", `}}`).Make(n / share)
			return slices.Concat([]byte(before), part.Make(n-len(refs)-len(before)), refs)
		}}
	}
	object := func(name, member string) boundtest.Shape {
		return boundtest.Counted(name, `{"type":"object","properties":{`, member, ",", `}}`)
	}
	shapes = append(shapes,
		object("parameters", `"p%d":{"type":"string","description":"d","default":"x","enum":["x","y"]}`),
		object("parameters that are like others", `"p-%d":{},"p_%[1]d":{}`),
		object("parameters of objects", `"p%d":{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"array","items":{"type":"integer"}}}}}}`),
		object("references", `"p%d":{"$ref":"#/properties/p0"}`),
		object("references to the whole", `"p%d":{"$ref":"#"}`),
		often("references to a long text", 48, boundtest.Repeated("", `{"enum":["`, "x", `"]}`)),
		often("references to a long list", 14, boundtest.Repeated("", `{"default":[1`, ",1.00000000000", `]}`)),
		boundtest.Counted("references to the next", `{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`, `"d%d":{"anyOf":[{"$ref":"#/$defs/d1%[1]d"},{"$ref":"#/$defs/d2%[1]d"}]}`, ",", `}}`),
		boundtest.Counted("a union", `{"properties":{"a":{"anyOf":[`, `{"type":"object","properties":{"k%d":{"type":"string"}}}`, ",", `]}}}`),
		boundtest.Counted("branches", `{"anyOf":[`, `{"properties":{"k%d":{"type":"string"}},"required":["k%[1]d"]}`, ",", `]}`),
		boundtest.Counted("allOf", `{"allOf":[`, `{"properties":{"k%d":{"type":"string"}}}`, ",", `]}`),
		boundtest.Nested("allOf in allOf", `{"allOf":[{"type":"object"},`, "]}"),
		boundtest.Counted("required", `{"type":"object","required":[`, `"k%d"`, ",", `]}`),
		boundtest.Repeated("a pattern", `{"properties":{"a":{"pattern":"`, "(a+)+", `"}}}`),
	)
	boundtest.Run(t, boundtest.Parser{
		Row: "schema of a tool", Shapes: shapes,
		Parse: func(text []byte) error {
			s := New(text, text)
			Shape(text)
			s.Doc("f")
			s.Line("f", 1000)
			_, err := s.Fit("f", json.RawMessage(`{"a":{"b":[1,2,{"c":"x"}]},"k1":"x","p1":"y"}`))
			return err
		},
	})
}
