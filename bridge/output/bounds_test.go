package output

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.Pick(boundtest.Text("", ""), "one word", "lines", "empty lines", "carriage returns", "colors", "zero bytes", "combining characters", "halves of characters")
	boundtest.Run(t, boundtest.Parser{Row: "output of code", Shapes: shapes, Read: func(ctx context.Context, r io.Reader) error {
		c := newCapture(1 << 20)
		both := Follow(c, func(string) {})
		b := make([]byte, 64<<10)
		for ctx.Err() == nil {
			n, err := r.Read(b)
			_, _ = both.Write(b[:n])
			if err != nil {
				break
			}
		}
		if ctx.Err() != nil {
			return ctx.Err() // the result of the run is made of what was kept
		}
		_, cut := c.lines(1 << 20)
		if !cut {
			return nil
		}
		return errors.New("it was cut")
	}})
}
