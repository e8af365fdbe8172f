package clientconfig

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// maxLooks bounds how often files that change all the time are read in a row.
const maxLooks = 5

// A Watcher has the servers of the config files, and reads the files again when Refresh
// finds that one of them has changed. It is safe for concurrent use.
type Watcher struct {
	options Options
	places  []Location // where files may be
	also    []string

	mu     sync.Mutex // held while looking
	config config.Config
	files  []seen // that the outcome depends on and that are there, as they were before they were read
	sure   bool   // each of files has another stamp if it was changed since
}

// seen is a file or folder as it was; the stamp is zero if it was not there.
type seen struct {
	path string
	state.Stamp
}

func see(path string) seen {
	stamp, _ := state.StampOf(path)
	return seen{path, stamp}
}

// Watch does what Discover(o) does. The outcome also depends on the files of more.
func Watch(o Options, more ...string) *Watcher {
	w := &Watcher{options: o, places: candidates(o), also: more}
	w.Refresh(func(config.Config) {})
	return w
}

// Config returns what Watch or the last Refresh found.
func (w *Watcher) Config() config.Config {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.config
}

// Refresh looks for changes, by the stamps of the files, and calls changed with a Config
// that differs from the one before. It returns when changed has, and so do calls at the
// same time. Every run waits for it, which takes a tenth of a millisecond for a user of many
// clients (BenchmarkRefresh).
func (w *Watcher) Refresh(changed func(config.Config)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	files := w.look(w.config.Reads)
	if w.sure && slices.Equal(files, w.files) {
		return
	}
	w.sure = false // if it panics, the next call reads the files again, and no run goes on with what was before
	var now config.Config
	var sure bool
	for range maxLooks {
		w.files, sure = files, areSettled(files)
		now = Discover(w.options)
		if files = w.look(now.Reads); slices.Equal(files, w.files) {
			break
		}
	}
	contain.Point("configuration: read")
	if !reflect.DeepEqual(now, w.config) {
		changed(now)
	}
	w.config, w.sure = now, sure
}

// look notes the files that the outcome depends on, as they are now: reads are those that
// config files name. w.mu is held.
func (w *Watcher) look(reads []string) (files []seen) {
	for _, p := range w.places {
		if p.Text == "" {
			files = lookAt(files, p.Path)
		}
		if !p.folder {
			continue
		}
		entries, _ := os.ReadDir(p.Path)
		for _, e := range entries[:min(len(entries), maxConfigFiles)] {
			if isConfigName(e.Name()) {
				files = lookAt(files, filepath.Join(p.Path, e.Name()))
			}
		}
	}
	for _, path := range slices.Concat(w.also, reads) {
		files = lookAt(files, path)
	}
	return files
}

// areSettled reports whether the next change of each is sure to show.
func areSettled(all []seen) bool {
	return !slices.ContainsFunc(all, func(s seen) bool { return !s.Settled() })
}

// lookAt notes a file that is there.
func lookAt(files []seen, path string) []seen {
	if s := see(path); s.Mode != 0 {
		return append(files, s)
	}
	return files
}
