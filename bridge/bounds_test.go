package bridge

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, resultAs(OutputCompact), resultAs(OutputTOON), resultAs(OutputJSON))
}

// resultAs writes results with output of that many bytes. A control character counts as six
// of them there.
func resultAs(mode OutputMode) boundtest.Parser {
	return boundtest.Parser{
		Row: "result as text",
		Shapes: boundtest.Named(append(boundtest.Pick(boundtest.Text("", ""), "one word", "lines", "words", "quotes", "backslashes", "characters that fold to many", "backticks"),
			boundtest.Repeated("long lines", "", strings.Repeat("x", 1000)+"\n", ""),
			boundtest.Repeated("numbers", "", "1\n", ""),
			boundtest.Repeated("zero bytes", "", "\x00xxxxx", ""),
			boundtest.Repeated("empty lines", "x", "\n", "x")), " as "+string(mode)),
		Parse: func(text []byte) error {
			lines := strings.SplitN(string(text), "\n", 200_000) // as many as output has
			r := &run.Result{Status: run.StatusError, Stdout: lines[:len(lines)/2], Stderr: lines[len(lines)/2:]}
			for range 50 {
				r.Calls = append(r.Calls, gate.CallRecord{Server: "s", Tool: "t", Arguments: string(text[:min(len(text), 120)])})
			}
			for range 200 {
				argument, err := json.Marshal(string(text[:min(len(text), 300)]))
				if err != nil {
					return err
				}
				r.Plan = append(r.Plan, gate.PlannedCall{Server: "s", Tool: "t", Arguments: argument})
			}
			Text(r, mode)
			return nil
		},
	}
}
