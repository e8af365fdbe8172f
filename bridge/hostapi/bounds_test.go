package hostapi

import (
	"context"
	"testing"

	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.Pick(boundtest.JSON(`{"arguments":`, "}"), "deep lists", "many small objects")
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.JSON(`{"data":`, "}"), "a long string", "escapes"), " as a picture")...)
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.JSON(`{"query":`, "}"), "escapes", "a huge number", "open lists"), " as a query")...)
	shapes = append(shapes, boundtest.Repeated("twins of data", `{"data":"AAAA"`, `,"data":"AAAA"`, "}"), boundtest.Repeated("twins of a name", `{"name":""`, `,"name":""`, "}"))
	saving := append(boundtest.Pick(boundtest.JSON(`{"name":"a","source":`, "}"), "escapes", "a long string"),
		boundtest.Named(boundtest.Pick(boundtest.JSON(`{"name":"a","imports":`, "}"), "many empty lists", "a wide list"), " as imports")...)
	saving = append(saving, boundtest.Repeated("imports", `{"name":"a","imports":[""`, `,""`, "]}"), boundtest.Repeated("a signature", `{"name":"a","signature":"`, "a b\u202e", `"}`))
	boundtest.Run(t,
		boundtest.Parser{Row: "parameters of a host call", Shapes: shapes, ParseContext: func(ctx context.Context, text []byte) error {
			_, err := readParams(ctx, text)
			return err
		}},
		boundtest.Parser{Row: "tool to save", Shapes: saving, Parse: func(text []byte) error {
			return (&savedTools{store: savedtools.Open(boundtest.Dir(t), "")}).save(text, nil)
		}},
	)
}
