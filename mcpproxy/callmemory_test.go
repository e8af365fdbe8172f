package mcpproxy

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/memory"
)

// TestLargeArgumentsWaitForRoomUntilTheCallEnds, and small ones do not.
func TestLargeArgumentsWaitForRoomUntilTheCallEnds(t *testing.T) {
	release, err := memory.Take(t.Context(), memory.Large, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	args := json.RawMessage(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
	ended := errors.New("the run is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if _, err := CanonicalArguments(ctx, args); !errors.Is(err, ended) {
		t.Errorf("got %v", err)
	}
	if got, err := CanonicalArguments(t.Context(), json.RawMessage(`{ "a": 1 }`)); err != nil || string(got) != `{"a":1}` {
		t.Errorf("small arguments: %s, %v", got, err)
	}
}
