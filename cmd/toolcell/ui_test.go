package main

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// TestWhatThePageCannotDoIsSaidAtTheStart.
func TestWhatThePageCannotDoIsSaidAtTheStart(t *testing.T) {
	for _, c := range []struct {
		readsOnly string
		code      bool
		want      string
	}{
		{"", true, ""},
		{"", false, "the page cannot approve"},
		{"It only shows.", true, "It only shows."},
		{"It only shows.", false, "It only shows."},
	} {
		if got := startNote(c.readsOnly, c.code); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if terminal, err := console.OpenTerminal(); err == nil {
		terminal.Close()
		return // the rest is about a process without one
	}
	o, printed := newOptions(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_ = serveUI(ended, uiOptions{Options: o, policySeen: &atomic.Int64{}})
	if said := printed(); !strings.Contains(said, "only shows") && !strings.Contains(said, "cannot approve") {
		t.Errorf("it says %q", said)
	}
}
