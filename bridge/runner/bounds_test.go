package runner

import (
	"context"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	frame := boundtest.JSON(`{"type":"call","id":1,"method":"call_tool","params":`, "}")
	frame = append(frame,
		boundtest.JSON(`{"type":"done","names":`, "}")[5],
		boundtest.Repeated("members", `{"type":"call"`, `,"id":1,"method":"m"`, "}"),
		boundtest.Repeated("a long method", `{"type":"call","method":"`, "m", `"}`),
	)
	shapes := boundtest.Pick(boundtest.JSON(`{"arguments":`, "}"), "deep lists", "many small objects")
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.JSON(`{"data":`, "}"), "a long string", "escapes"), " as a picture")...)
	shapes = append(shapes, boundtest.Named(boundtest.Pick(boundtest.JSON(`{"query":`, "}"), "escapes", "a huge number", "open lists"), " as a query")...)
	shapes = append(shapes, boundtest.Repeated("twins of data", `{"data":"AAAA"`, `,"data":"AAAA"`, "}"), boundtest.Repeated("twins of a name", `{"name":""`, `,"name":""`, "}"))
	boundtest.Run(t,
		boundtest.Parser{Row: "frame of the runner", Shapes: frame, ParseContext: func(ctx context.Context, text []byte) error {
			f, err := parseFrame(ctx, text)
			if err == nil {
				ownText(f.Result)
				jsonString(f.Names)
			}
			return err
		}},
		boundtest.Parser{Row: "parameters of a host call", Shapes: shapes, ParseContext: func(ctx context.Context, text []byte) error {
			_, err := readParams(ctx, text)
			return err
		}},
		boundtest.Parser{
			Row: "stack of a run", Shapes: append(boundtest.JSON("", ""),
				boundtest.Repeated("frames", `[{"file":"f","line":1,"name":"n"}`, `,{"file":"f","line":1,"name":"n"}`, "]")),
			Parse: func(text []byte) error {
				d := newStackDump()
				err := d.addFrames(text)
				d.lines("x = 1\n", "script.py", "/host")
				return err
			},
		},
	)
}
