package clientconfig

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"golang.org/x/sys/unix"
)

// maxLooks bounds how often files that change all the time are read in a row.
const maxLooks = 5

// A Watcher has the servers of the config files, and reads the files again when Refresh
// finds that one of them has changed. It is safe for concurrent use.
type Watcher struct {
	options Options
	also    []string

	mu      sync.Mutex // held while looking
	config  config.Config
	files   []seen // that the outcome depends on and that are there, as they were before they were read
	sure    bool   // each of files has another stamp if it was changed since
	all     []seen // files, and the folders in which others may appear
	settled bool   // each of all has another stamp if it was changed since
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

func (s seen) changed() bool { return see(s.path) != s }

// Watch does what Discover(o) does. The outcome also depends on the files of more.
func Watch(o Options, more ...string) *Watcher {
	w := &Watcher{options: o, also: more}
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
// same time. Every run waits for it, so for missing files it only checks whether
// something appeared in the nearest folder above, and these are few.
func (w *Watcher) Refresh(changed func(config.Config)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sure && w.settled && !slices.ContainsFunc(w.all, seen.changed) {
		return
	}
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

// list finds everything that the outcome depends on: reads are files that config files
// name. A path that ends in /* is a folder.
func (w *Watcher) list(reads []string) (all []string) {
	for _, p := range candidates(w.options) {
		switch {
		case p.folder:
			all = append(all, p.Path+"/*")
		case p.Text == "":
			all = append(all, p.Path)
		}
	}
	return slices.Concat(all, w.also, reads)
}

// look notes everything as it is now, and returns the files. w.mu is held.
func (w *Watcher) look(reads []string) []seen {
	paths := w.list(reads)
	w.all = w.all[:0]
	done := map[string]bool{}
	for _, path := range paths { // first: what appears meanwhile, the next look sees
		w.lookAbove(strings.TrimSuffix(path, "/*"), done)
	}
	folders := len(w.all)
	for _, path := range paths {
		dir, folder := strings.CutSuffix(path, "/*")
		w.lookAt(dir)
		if !folder {
			continue
		}
		entries, _ := os.ReadDir(dir)
		files := slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !isConfigName(e.Name()) })
		for _, e := range files[:min(len(files), maxConfigFiles)] {
			w.lookAt(filepath.Join(dir, e.Name()))
		}
	}
	w.settled = areSettled(w.all)
	return slices.Clone(w.all[folders:])
}

// areSettled reports whether the next change of each is sure to show.
func areSettled(all []seen) bool {
	return !slices.ContainsFunc(all, func(s seen) bool { return !s.Settled() })
}

// lookAt notes a file that is there, and a link that leads nowhere yet.
func (w *Watcher) lookAt(path string) seen {
	s := see(path)
	if s.Mode != 0 || isLink(path) {
		w.all = append(w.all, s)
	}
	return s
}

// lookAbove notes the nearest folder above path that is there, and links on the way
// that lead nowhere yet.
func (w *Watcher) lookAbove(path string, done map[string]bool) {
	for dir := filepath.Dir(path); !done[dir]; dir = filepath.Dir(dir) {
		done[dir] = true
		if w.lookAt(dir).Mode&unix.S_IFMT == unix.S_IFDIR {
			return
		}
	}
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
