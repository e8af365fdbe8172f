package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
)

// TestColorsEndWithTheRun: also if the user has stopped it, and what it wrote is
// not the end of a text.
func TestColorsEndWithTheRun(t *testing.T) {
	for name, stop := range map[string]bool{"done": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := terminaltest.Open(t, 80)
			defer theirs.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var req run.Request
			s := &console.Streams{Out: theirs, Err: theirs}
			do := showLive(ctx, s, &req, func(err error) { t.Error(err) }, console.NewProgress(theirs, true), func(_ context.Context, req run.Request) *run.Result {
				for _, part := range []string{"\x1b]0;title", "\x07\x1b[3", "1mred", "\x1b]52;c;"} {
					if _, err := req.Stdout.Write([]byte(part)); err != nil {
						t.Error(err)
					}
				}
				if stop {
					cancel()
				}
				return &run.Result{}
			})
			do(ctx, req)
			if _, err := theirs.WriteString("ours\n"); err != nil {
				t.Fatal(err)
			}
			if got, want := readTerminal(t, ours), "\x1b[31mred\x1b[0mours\r\n"; got != want {
				t.Errorf("the terminal got %q, want %q", got, want)
			}
		})
	}
}

// readTerminal reads up to the end of a line.
func readTerminal(t *testing.T, ours *os.File) string {
	t.Helper()
	var all strings.Builder
	for b := make([]byte, 256); !strings.HasSuffix(all.String(), "\n"); {
		n, err := ours.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b[:n])
	}
	return all.String()
}
