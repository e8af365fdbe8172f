package toolvalue

import (
	"context"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.JSON(`{"content":[{"type":"text","text":"x"}],"structuredContent":`, "}")
	shapes = append(shapes,
		boundtest.Repeated("contents", `{"content":[`, `{"type":"text","text":"x"},`, `{}]}`),
		boundtest.Repeated("texts", `{"content":[{"type":"text","text":"`, `\"\u00e9`, `"}]}`),
	)
	boundtest.Run(t, boundtest.Parser{
		Row: "result of a tool", Shapes: shapes, Worst: "texts",
		ParseContext: func(ctx context.Context, text []byte) error {
			_, err := Of(ctx, text)
			return err
		},
	})
}
