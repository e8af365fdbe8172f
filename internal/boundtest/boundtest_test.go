package boundtest

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var sink []byte

// TestBrokenRulesAreReported measures parsers that break one rule each, and one that
// breaks none.
//
//test:alone
func TestBrokenRulesAreReported(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("it takes seconds, and the race detector makes all of it slower and larger")
	}
	letters := []Shape{repeated("letters", "", "x", "")}
	for want, c := range map[string]struct {
		Parser
		Row
	}{
		"": {
			Parser{Row: "good", Parse: func([]byte) error { return nil }},
			Row{Bytes: 1 << 20, Peak: 16},
		},
		"growth": {
			Parser{Row: "quadratic", ParseContext: func(ctx context.Context, text []byte) error {
				for i := 0; i < len(text)*len(text) && ctx.Err() == nil; i += 7 << 20 {
					work(1)
				}
				return nil
			}},
			Row{Bytes: 16 << 10, Peak: 16, Cancels: true},
		},
		"time": {
			Parser{Row: "slow", Parse: func([]byte) error { work(900); return nil }},
			Row{Bytes: 64 << 10, Peak: 16},
		},
		"cancel": {
			Parser{Row: "deaf", Read: func(ctx context.Context, r io.Reader) error {
				for range 100 {
					if _, err := io.CopyN(io.Discard, r, 64<<10); err != nil {
						return err
					}
				}
				<-ctx.Done()
				work(1200)
				return nil
			}},
			Row{Bytes: 64 << 10, Peak: 16, Cancels: true},
		},
		"memory": {
			Parser{Row: "large", Parse: func([]byte) error { sink = make([]byte, 40<<20); touch(sink); return nil }},
			Row{Bytes: 64 << 10, Peak: 16},
		},
		"room": {
			Parser{Row: "large for its input", Parse: func(text []byte) error { sink = make([]byte, 40<<20); touch(sink); return nil }},
			Row{Bytes: 4 << 20, Room: 8},
		},
		"end": {
			Parser{Row: "fatal", Parse: func([]byte) error { panic("\x00\xff") }},
			Row{Bytes: 64 << 10, Peak: 16},
		},
	} {
		id := c.Parser.Row + "/letters"
		if os.Getenv(childEnv) != "" {
			answer(t, c.Parser, c.Row, letters[0], id)
			continue
		}
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			broken := attempt(t, c.Parser, c.Row, id)
			if got := strings.Join(slices.Sorted(maps.Keys(broken)), " "); got != want {
				t.Errorf("it breaks %q, want %q: %v", got, want, broken)
			}
			if strings.Contains(broken["end"], "\x00") || !utf8.ValidString(broken["end"]) {
				t.Errorf("its output has bytes that are no text: %q", broken["end"])
			}
		})
	}
}

// work takes some milliseconds on a machine of usual speed, and less on a fast one.
func work(ms int) {
	for range ms {
		json.Valid(usualWork[:len(usualWork)/10])
	}
}

// touch makes the kernel give all pages.
func touch(pages []byte) {
	for i := 0; i < len(pages); i += 4096 {
		pages[i] = 1
	}
}
