package elicitation

import (
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
)

func TestBounds(t *testing.T) {
	hidden := redact.New(config.Server{Env: map[string]string{"TOKEN": "a-secret-of-some-length"}})
	shapes := boundtest.JSON(`{"message":"m","requestedSchema":{"type":"object","properties":{"a":`, "}}}")
	shapes = append(shapes,
		boundtest.Counted("fields", `{"message":"m","requestedSchema":{"type":"object","properties":{`, `"f%d":{"type":"string"}`, ",", "}}}"),
		boundtest.Counted("choices", `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","enum":[`, `"c%d"`, ",", "]}}}}"),
		boundtest.Repeated("a message", `{"requestedSchema":{"type":"object","properties":{}},"message":"`, `a-secret-of-some-length\u200b`, `"}`),
		boundtest.Repeated("an address", `{"mode":"url","url":"https://x/`, "%41", `","message":""}`),
	)
	boundtest.Run(t, boundtest.Parser{
		Row: "form of a server", Shapes: shapes,
		Parse: func(text []byte) error {
			_, err := Read(text, Capabilities{Form: true, URL: true}, hidden)
			return err
		},
	})
}
