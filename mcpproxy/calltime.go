package mcpproxy

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A callTime is the time that a server has for a request. It stands still while the
// user is asked. A nil one does not end.
type callTime struct {
	mu     sync.Mutex
	left   time.Duration
	since  time.Time // when timer was started; it stands still otherwise
	timer  *time.Timer
	paused int
}

// startCallTime bounds a request; 0 is no bound.
func startCallTime(ctx context.Context, limit time.Duration) (context.Context, *callTime, context.CancelFunc) {
	if limit <= 0 {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, nil, cancel
	}
	ctx, cancel := context.WithCancelCause(ctx)
	t := &callTime{left: limit, since: time.Now()}
	t.timer = time.AfterFunc(limit, func() { cancel(noAnswer(limit)) })
	return ctx, t, func() {
		t.pause() // for good
		cancel(nil)
	}
}

func noAnswer(limit time.Duration) error {
	return fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded)
}

// pause stops the time until resume is called. Pauses nest.
func (t *callTime) pause() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused++; t.paused == 1 {
		t.timer.Stop()
		t.left -= time.Since(t.since)
	}
}

func (t *callTime) resume() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused--; t.paused == 0 {
		t.since = time.Now()
		t.timer.Reset(max(t.left, 0))
	}
}
