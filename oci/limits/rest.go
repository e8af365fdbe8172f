package limits

import (
	"context"
	"sync"
	"time"
)

// watching is what both watches of a sandbox have: a loop in a goroutine of its own.
type watching struct {
	watch *Watch
	life  context.Context // of the loop
	stop  context.CancelFunc
	ended chan struct{}
}

func newWatching(w *Watch) watching {
	life, stop := context.WithCancel(context.Background())
	return watching{w, life, stop, make(chan struct{})}
}

// stopAndWait ends the loop.
func (w *watching) stopAndWait() {
	w.stop()
	<-w.ended
}

// pause waits, and reports whether to go on.
func (w *watching) pause(d time.Duration) bool { return await(w, time.After(d)) }

// await waits for an event, such as the end of a rest, and reports whether to go on.
func await[T any](w *watching, event <-chan T) bool {
	select {
	case <-w.life.Done():
		return false
	case <-event:
		return true
	}
}

// A rest lets the watches of a sandbox pause while nothing in it can run. Its zero
// value lets none pause.
type rest struct {
	mu    sync.Mutex
	still func() bool   // nil while the sandbox is not held
	over  chan struct{} // closed when it goes on
}

// Hold says that the sandbox has been told to stop. Its watches look on until still
// reports that nothing in it runs any more, once more then, and not again until Resume.
func (w *Watch) Hold(still func() bool) {
	w.rest.mu.Lock()
	defer w.rest.mu.Unlock()
	if w.rest.still == nil {
		w.rest.over = make(chan struct{})
	}
	w.rest.still = still
}

// Resume says that the sandbox is about to go on.
func (w *Watch) Resume() {
	w.rest.mu.Lock()
	defer w.rest.mu.Unlock()
	if w.rest.still != nil {
		w.rest.still = nil
		close(w.rest.over)
	}
}

// begun returns what is closed at the end of a rest that a watch may take now, nil if
// it may not. What the watch does after this call and before it waits sees all that
// the sandbox has done.
func (r *rest) begun() <-chan struct{} {
	r.mu.Lock()
	still, over := r.still, r.over
	r.mu.Unlock()
	if still == nil || !still() {
		return nil
	}
	return over
}
