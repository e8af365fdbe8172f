package rawjson

import (
	"context"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/internal/memory"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row: "arguments of a call", Shapes: append(boundtest.JSON("", ""), boundtest.JSON(`{"a":`, "}")[1]), Worst: "long keys",
		ParseContext: func(ctx context.Context, text []byte) error {
			_, err := memory.Decode(ctx, "reading", len(text), memory.Arguments, func() ([]byte, error) { return Canonical(text) })
			return err
		},
	})
}
