package redact

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

func TestBounds(t *testing.T) {
	h := New(config.Server{Env: map[string]string{"TOKEN": "a-secret-of-some-length", "OTHER": "a-secret-of-some"}})
	shapes := append(boundtest.JSON("", ""),
		boundtest.Repeated("secrets", `"`, "a-secret-of-some-length", `"`),
		boundtest.Repeated("beginnings of secrets", `"`, "a-secret-of-so", `"`),
		boundtest.Repeated("secrets in lists", "[", `"a-secret-of-some-length",`, "1]"))
	boundtest.Run(t, boundtest.Parser{
		Row: "JSON with secrets", Shapes: shapes,
		ParseContext: func(ctx context.Context, text []byte) error {
			_, err := memory.Decode(ctx, "hiding secrets", len(text), memory.Secrets, func() (json.RawMessage, error) { return h.JSON(text) })
			return err
		},
	}, boundtest.Parser{
		Row: "text with secrets",
		Shapes: append(boundtest.Pick(boundtest.Text("", ""), "one word", "lines", "bytes that are not UTF-8"),
			boundtest.Repeated("secrets", "", "a-secret-of-some-length", ""),
			boundtest.Repeated("beginnings of secrets", "", "a-secret-of-so", ""),
			boundtest.Repeated("letters that begin secrets", "", "a", "")),
		Parse: func(text []byte) error {
			h.Text(string(text))
			h.Secret(string(text))
			return nil
		},
	})
}
