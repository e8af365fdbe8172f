package bridge

import (
	"testing"

	"github.com/toolcell/toolcell/bridge/toon"
	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row: "fences around code and results",
		Shapes: append(boundtest.Pick(boundtest.Text("", ""), "one word", "lines", "backticks", "blanks", "zero bytes"),
			boundtest.Repeated("a fence", "```python\n", " x\n", "```"),
			boundtest.Repeated("fences", "", "```\n", ""),
			boundtest.Repeated("a long fence", "", "`", ""),
			boundtest.Repeated("a long fence of tildes", "", "~", "\nx\n~~~")),
		Parse: func(text []byte) error {
			_ = checkCode(withoutFence(string(text)))
			text = text[:min(len(text), 1<<20)] // as much as a result has
			toonOrJSON(toon.Object{{Key: "stdout", Value: string(text)}}, map[string]string{"stdout": string(text)})
			return nil
		},
	})
}
