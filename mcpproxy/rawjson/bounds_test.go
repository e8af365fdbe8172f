package rawjson

import (
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row: "arguments of a call", Shapes: append(boundtest.JSON("", ""), boundtest.JSON(`{"a":`, "}")[1]),
		Parse: func(text []byte) error {
			_, err := Canonical(text)
			return err
		},
	})
}
