package bridge

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/internal/memory"
)

// TestLargeResultsWaitForRoom until their call ends, and small ones do not.
func TestLargeResultsWaitForRoom(t *testing.T) {
	release, err := memory.Take(t.Context(), memory.Large, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	s := newServer(t, nil, nil)
	ended := errors.New("the call was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	large := strings.Repeat("x = 1\n", 100_000)
	if _, err := s.answer(ctx, s.connections.of(nil, nil), &run.Result{Stdout: strings.Split(large, "\n")}); !errors.Is(err, ended) {
		t.Errorf("a result: %v", err)
	}
	if _, err := s.answer(t.Context(), s.connections.of(nil, nil), &run.Result{Stdout: []string{"1"}}); err != nil {
		t.Errorf("a small result: %v", err)
	}
}
