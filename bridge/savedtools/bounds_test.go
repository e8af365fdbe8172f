package savedtools

import (
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := append(boundtest.Pick(boundtest.Text("", ""), "one word", "lines", "bytes that are not UTF-8"),
		boundtest.Repeated("futures", "", "from __future__ import annotations\n", ""))
	shapes = append(shapes, boundtest.Pick(boundtest.JSON(mark+`{"schema":`, "}\n"), "deep objects", "open lists", "a wide object", "a huge number")...)
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.JSON(mark+`{"imports":`, "}\n"), "many empty lists", "escapes"), " as imports")...)
	boundtest.Run(t, boundtest.Parser{Row: "saved tool", Shapes: shapes, Parse: func(text []byte) error {
		tool := parse("a", text)
		Module([]Tool{tool, tool})
		_, err := format(tool)
		return err
	}})
}
