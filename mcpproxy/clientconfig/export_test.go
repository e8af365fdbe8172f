package clientconfig

// Bounds that tests of the package reach.
const (
	Coarse      = coarse
	MaxProblems = maxProblems
	MaxServers  = maxServers
)

// HasInotify reports whether the kernel reports changes.
func (w *Watcher) HasInotify() bool { return w.fs != nil }

// Watches is the number of folders whose changes the kernel reports.
func (w *Watcher) Watches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.dirs)
}

// StopInotify lets the kernel report no further change, and waits for the looks
// under way if wait is set.
func (w *Watcher) StopInotify(wait bool) {
	if w.fs != nil {
		w.fs.Close()
	}
	if wait {
		w.finished.Wait()
	}
}

// Settle makes the watcher trust the times of the files, as if two seconds had
// passed.
func (w *Watcher) Settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = true
}

// Looks reports whether the watcher trusts the times of the files, and at how many
// files and folders it looks.
func (w *Watcher) Looks() (settled bool, seen int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.settled, len(w.seen)
}
