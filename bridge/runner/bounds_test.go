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
	boundtest.Run(t,
		boundtest.Parser{Row: "frame of the runner", Shapes: frame, ParseContext: func(ctx context.Context, text []byte) error {
			f, err := parseFrame(ctx, text)
			if err == nil {
				ownText(f.Result)
				jsonString(f.Names)
			}
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
