package catalog

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.JSON(`{"name":"t","inputSchema":{"type":"object","x":`, `}}`)
	shapes = append(shapes, boundtest.Between(`{"name":"t","inputSchema":{"type":"object","properties":{`, `}}}`,
		boundtest.Counted("parameters", "", `"p%d":{"type":"string","description":"d\u00e9"}`, ",", ""))...)
	shapes = append(shapes, boundtest.Between(`{"name":"t","description":`, `}`, boundtest.JSON("", "")[11:16]...)...)
	boundtest.Run(t, boundtest.Parser{
		Row: "tool definition", Shapes: shapes,
		ParseContext: func(ctx context.Context, text []byte) error {
			b := NewBuilder(slog.New(slog.DiscardHandler))
			b.OverHTTP = true
			if _, err := b.Add(ctx, []json.RawMessage{text}); err != nil {
				return err
			}
			for _, t := range b.Definitions().tools {
				Outline(t.InputSchema)
			}
			return nil
		},
	})
}
