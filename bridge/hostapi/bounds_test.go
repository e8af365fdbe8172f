package hostapi

import (
	"testing"

	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	saving := append(boundtest.Pick(boundtest.JSON(`{"name":"a","source":`, "}"), "escapes", "a long string"),
		boundtest.Named(boundtest.Pick(boundtest.JSON(`{"name":"a","imports":`, "}"), "many empty lists", "a wide list"), " as imports")...)
	saving = append(saving, boundtest.Repeated("imports", `{"name":"a","imports":[""`, `,""`, "]}"), boundtest.Repeated("a signature", `{"name":"a","signature":"`, "a b\u202e", `"}`))
	boundtest.Run(t,
		boundtest.Parser{Row: "tool to save", Shapes: saving, Parse: func(text []byte) error {
			return (&savedTools{store: savedtools.Open(boundtest.Dir(t), "")}).save(text, nil)
		}},
	)
}
