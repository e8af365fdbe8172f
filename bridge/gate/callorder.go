package gate

import (
	"context"
	"sync"
)

// A callOrder lets calls of a run that arrive in any order wait for those that the code
// made before them.
type callOrder struct {
	mu      sync.Mutex
	next    int           // the first call that is not decided
	decided map[int]bool  // later ones that are
	changed chan struct{} // closed when next changes
}

func newCallOrder() callOrder {
	return callOrder{next: 1, decided: map[int]bool{}, changed: make(chan struct{})}
}

// decide says that later calls no longer have to wait for this one.
func (o *callOrder) decide(number int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if number < o.next {
		return
	}
	o.decided[number] = true
	if number > o.next {
		return
	}
	for o.decided[o.next] {
		delete(o.decided, o.next)
		o.next++
	}
	close(o.changed)
	o.changed = make(chan struct{})
}

// await waits until all calls before this one are decided.
func (o *callOrder) await(ctx context.Context, number int) error {
	for {
		o.mu.Lock()
		next, changed := o.next, o.changed
		o.mu.Unlock()
		if next >= number {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
