package condition

import (
	"context"
	"errors"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	all, err := parseText(t, `
[[when]]
path = "a"
op = "glob"
value = ["*a*a*a*b", "*\u00e9*"]
[[when]]
path = "a"
op = "outside"
value = ["/a/b", "/c"]
[[when]]
path = "a"
op = ">"
value = 0.1
[[when]]
path = "*.*.k\u00e9"
op = "=="
value = 1
`)
	if err != nil {
		t.Fatal(err)
	}
	shapes := boundtest.Pick(boundtest.JSON(`{"a":`, "}"), "deep objects", "open lists", "a huge number", "a huge exponent", "a long fraction", "escapes", "many small objects")
	shapes = append(shapes, boundtest.JSON("", "")[5])
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.Text(`{"a":"`, `"}`), "letters of one kind", "combining characters out of order", "characters that fold to many"), " as text")...)
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.Text(`{"a":"/a/b/`, `"}`), "one word", "joiners", "overrides"), " in a path")...)
	shapes = append(shapes,
		boundtest.Repeated("escapes of escapes", `{"a":"/a/b/`, "%25", `"}`),
		boundtest.Repeated("parts of a path", `{"a":"/a/b`, "/./x", `"}`),
	)
	boundtest.Run(t, boundtest.Parser{Row: "arguments under conditions", Shapes: shapes, ParseContext: func(ctx context.Context, text []byte) (err error) {
		for _, w := range all {
			why, _ := w.Check(ctx, text)
			err = errors.Join(err, errors.New(why))
		}
		return err
	}})
}
