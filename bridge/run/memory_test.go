package run

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/memory"
)

// TestLargeCodeWaitsForRoom until its call ends, and a small one does not.
func TestLargeCodeWaitsForRoom(t *testing.T) {
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
	if err := (&Run{runs: s, req: Request{Code: large}}).read(ctx); statusOf(err) != StatusCancelled {
		t.Errorf("code: %v", err)
	}
	if err := (&Run{runs: s, req: Request{Code: "x = 1"}}).read(t.Context()); err != nil {
		t.Errorf("small code: %v", err)
	}
}
