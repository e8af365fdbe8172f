package releases

import (
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row: "newest release",
		Shapes: append(boundtest.JSON(`{"files":`, "}"),
			boundtest.Counted("files", `{"files":[`, `{"filename":"toolcell-%d.0.0-py3-none-any.whl"}`, ",", "]}"),
		),
		Parse: func(text []byte) error {
			_, err := newestInIndex(text)
			_, errPackage := ofPackage(text)
			if err == nil {
				err = errPackage
			}
			return err
		},
	})
}
