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
	answers := boundtest.JSON(`{"a":`, "}")[9:]
	answers = append(answers, boundtest.Named(boundtest.Pick(boundtest.JSON(`{"n":`, "}"), "a huge number", "a huge exponent", "a long fraction"), " as number")...)
	answers = append(answers, boundtest.Counted("choices that are not there", `{"e":[`, `"c%d"`, ",", "]}"), boundtest.Repeated("choices", `{"e":[`, `"x",`, `"y"]}`))
	boundtest.Run(t, boundtest.Parser{
		Row: "form of a server", Shapes: shapes,
		Parse: func(text []byte) error {
			_, err := Read(text, Capabilities{Form: true, URL: true}, hidden)
			return err
		},
	}, boundtest.Parser{
		Row: "answer to a form", Shapes: answers,
		Parse: func(text []byte) error {
			r := Request{Mode: Form, Schema: []byte(`{"type":"object","properties":{"a":{"type":"string","format":"email","maxLength":9},"n":{"type":"number","minimum":0.1},"e":{"type":"array","items":{"enum":["x","y"]}}}}`)}
			_, err := r.ForServer(Reply{Action: "accept", Content: text})
			return err
		},
	})
}
