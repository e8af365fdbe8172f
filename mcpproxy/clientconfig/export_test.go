package clientconfig

// Bounds that tests of the package reach.
const (
	MaxProblems = maxProblems
	MaxServers  = maxServers
)

// Settle makes the watcher trust the times of the files, as if two seconds had
// passed.
func (w *Watcher) Settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sure = true
}

// Looks reports whether the watcher trusts the times of the files, and how many of those
// that it looks for are there.
func (w *Watcher) Looks() (settled bool, seen int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sure, len(w.files)
}
