package pins

import (
	"log/slog"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// BenchmarkPinOfACall is what a call costs whose tool is as it was.
func BenchmarkPinOfACall(b *testing.B) {
	pinned := NewComparison(config.Server{Name: "fake", Command: "fake"}, Store{Dir: b.TempDir()}, slog.New(slog.DiscardHandler))
	tool := Definition{Name: "echo", Digest: "d1"}
	known := func() []Definition { return []Definition{tool} }
	pinned.Record(known())
	for b.Loop() {
		if s := pinned.Standing(tool, known); s.Changed() != "" {
			b.Fatal(s.Changed())
		}
	}
}

// TestToolThatWasNotComparedHasChanged: what holds for changed tools holds for it.
func TestToolThatWasNotComparedHasChanged(t *testing.T) {
	if s := (Standing{}); s.Changed() == "" || s.ReadsOnly {
		t.Errorf("%+v", s)
	}
}
