package run

import (
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row: "fences around code",
		Shapes: append(boundtest.Pick(boundtest.Text("", ""), "one word", "lines", "empty lines", "backticks", "blanks", "zero bytes"),
			boundtest.Repeated("a fence", "```python\n", " x\n", "```"),
			boundtest.Repeated("an indented fence", "   ```python\n", "   x\n", "   ```"),
			boundtest.Repeated("empty lines in a fence", "  ```python\n", "\n", "```"),
			boundtest.Repeated("fences", "", "```\n", ""),
			boundtest.Repeated("a long fence", "", "`", ""),
			boundtest.Repeated("a long fence of tildes", "", "~", "\nx\n~~~")),
		Parse: func(text []byte) error { return checkCode(withoutFence(string(text))) },
	})
}
