package run

import (
	"sync"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/output"
)

// TestShortRunsAreNotFollowed: what is over at once needs no progress.
func TestShortRunsAreNotFollowed(t *testing.T) {
	s := newServer(t, nil, nil)
	var mu sync.Mutex
	var heard []string
	begin := time.Now()
	r := s.Do(t.Context(), Request{Code: "for n in range(100_000): print(n)", Lines: true, Progress: func(_, _ int64, text string) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, text)
	}})
	most := 8 + int(time.Since(begin)/output.LiveInterval)
	mu.Lock()
	before := len(heard)
	mu.Unlock()
	time.Sleep(2 * output.LiveInterval)
	mu.Lock()
	defer mu.Unlock()
	if r.IsError() || len(heard) != before || before > most {
		t.Errorf("%d before the end, %d in all: %q", before, len(heard), heard)
	}
}
