package transport

import (
	"context"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.Pick(boundtest.JSON(`{"tools":[{"name":"a","inputSchema":`, `}],"nextCursor":"x"}`), "deep lists")
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.JSON(`{"tools":[],"nextCursor":`, "}"), "escapes"), " as cursor")...)
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.JSON(`{"tools":`, "}"), "many empty lists"), " as tools")...)
	boundtest.Run(t, boundtest.Parser{Row: "page of a list", Shapes: shapes, Worst: "many empty lists as tools", ParseContext: func(ctx context.Context, text []byte) error {
		p, err := readPage(ctx, text, "tools")
		if err == nil {
			_, err = p.next()
		}
		return err
	}})
}
