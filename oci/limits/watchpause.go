package limits

import "sync"

// A rest lets the watches of a sandbox pause while nothing in it can run. Its zero
// value lets none pause.
type rest struct {
	mu    sync.Mutex
	still func() bool   // nil while the sandbox is not held
	over  chan struct{} // closed when it continues
}

// Hold reports that the sandbox has been told to stop. Its watches continue until still
// reports that nothing in it runs, check once more, and then pause until Resume.
func (w *Watch) Hold(still func() bool) {
	w.rest.mu.Lock()
	defer w.rest.mu.Unlock()
	if w.rest.still == nil {
		w.rest.over = make(chan struct{})
	}
	w.rest.still = still
}

// Resume reports that the sandbox is about to continue.
func (w *Watch) Resume() {
	w.rest.mu.Lock()
	defer w.rest.mu.Unlock()
	if w.rest.still != nil {
		w.rest.still = nil
		close(w.rest.over)
	}
}

// begun returns a channel that is closed at the end of a rest, nil if the watch may not rest
// now. A check between this call and the wait sees everything that the sandbox has done.
func (r *rest) begun() <-chan struct{} {
	r.mu.Lock()
	still, over := r.still, r.over
	r.mu.Unlock()
	if still == nil || !still() {
		return nil
	}
	return over
}
