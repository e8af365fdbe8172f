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
	w.settled, w.sure = true, true
}

// Looks reports whether the watcher trusts the times of the files, and at how many
// files and folders it looks.
func (w *Watcher) Looks() (settled bool, seen int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled && w.sure, len(w.all)
}
