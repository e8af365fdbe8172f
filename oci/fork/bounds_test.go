package fork

import (
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row:    "answer of a template",
		Shapes: append(boundtest.JSON("", ""), boundtest.Counted("modules", `{"Failed":{`, `"m%d":""`, ",", "}}"), boundtest.Repeated("twins of a module", `{"Failed":{"m":""`, `,"m":""`, "}}")),
		Parse:  func(text []byte) error { return new(zygote).take(text) },
	})
}
