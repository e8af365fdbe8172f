package clientconfig

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"golang.org/x/sys/unix"
)

const (
	// settleTime is what a change waits for others to join it: editors write a
	// file in several steps, and Claude writes its own often.
	settleTime = 200 * time.Millisecond
	maxWatches = 256
	maxLooks   = 5 // in a row, at files that change all the time
)

// Watcher notices changes of the config files while the program runs. The
// kernel tells it (inotify); where that cannot be had, Refresh looks.
type Watcher struct {
	options Options
	also    []string
	changed func(config.Config)

	fs       *fsnotify.Watcher // nil if the kernel has none to give
	cancel   context.CancelFunc
	finished sync.WaitGroup

	mu      sync.Mutex // held while looking
	config  config.Config
	files   []string // that the outcome depends on, as arm found
	folders []string // nearest to them that are there, and links on the way that lead nowhere yet
	state   string   // of all files, when they were last looked at
	seen    []seen   // as long as it stays, so does the state, if it is settled
	settled bool     // no time in seen is so new that a later change may have the same
	paths   map[string]bool
	dirs    map[string]bool // watched
}

// seen is what the kernel said of a file or folder; all zero if it is not there.
type seen struct {
	path string
	unix.Stat_t
}

// coarse is how far apart two changes are that all file systems give different
// times (FAT counts in steps of two seconds).
const coarse = 2 * time.Second

// see asks the kernel. When something was read does not count.
func see(path string) seen {
	s := seen{path: path}
	if unix.Stat(path, &s.Stat_t) != nil {
		s.Stat_t = unix.Stat_t{}
	}
	s.Atim = unix.Timespec{}
	return s
}

// Watch begins to watch the files that Discover(o) reads, and the files of
// more, on which the outcome depends too. Changed is called, never at two times
// at once, with every Config that differs from the one before; found is the
// first. It ends with ctx or Close.
func Watch(ctx context.Context, o Options, found config.Config, changed func(config.Config), more ...string) *Watcher {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watcher{options: o, also: more, changed: changed, config: found, cancel: cancel, dirs: map[string]bool{}}
	if fs, err := fsnotify.NewWatcher(); err == nil {
		w.fs = fs
	}
	w.mu.Lock()
	w.arm()
	w.mu.Unlock()
	// What changed between Discover and now: one look, as nothing tells.
	w.finished.Go(func() {
		defer contain.Recover("watching the configuration", nil)
		_ = contain.Call("reading the configuration", func() error { w.look(true); return nil })
		w.loop(ctx)
	})
	return w
}

// Close ends the watching and waits until no call of changed is under way.
func (w *Watcher) Close() {
	w.cancel()
	w.finished.Wait()
	if w.fs != nil {
		w.fs.Close()
	}
}

// Refresh looks for changes now, by the times and sizes of the files, and
// returns when it has reported them. Every run waits for it, so for missing
// files it only checks whether something appeared in the nearest folder above,
// and these are few.
func (w *Watcher) Refresh() { w.look(false) }

// loop waits for the kernel's word, and then until the word is out.
func (w *Watcher) loop(ctx context.Context) {
	if w.fs == nil {
		return
	}
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if w.concerns(event.Name) {
				settled.Reset(settleTime)
			}
		case _, ok := <-w.fs.Errors:
			if !ok {
				return
			}
			settled.Reset(settleTime) // events were lost: look
		case <-settled.C:
			_ = contain.Call("reading the configuration", func() error { w.look(true); return nil })
		}
	}
}

// concerns reports whether an event is about a file that counts, or a folder
// on the way to one.
func (w *Watcher) concerns(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paths[name] || isConfigName(filepath.Base(name)) && w.paths[filepath.Dir(name)+"/*"]
}

// look discovers again if any file changed, or if sure is set.
func (w *Watcher) look(sure bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !sure && w.settled && !slices.ContainsFunc(w.seen, func(s seen) bool { return see(s.path) != s }) {
		return
	}
	state := w.stat()
	if state == w.state && !sure {
		return
	}
	before, whole := w.config, false
	defer func() {
		if !whole { // it panics: the next look reads the files again, and no run goes on with what was before
			w.state, w.settled = "", false
		}
	}()
	for range maxLooks {
		w.state = state // as it was before the files are read
		w.config = Discover(w.options)
		w.arm()
		// No event reports files that appeared before their folder was watched.
		if state = w.stat(); state == w.state {
			break
		}
	}
	contain.Point("configuration: read")
	if !reflect.DeepEqual(w.config, before) {
		w.changed(w.config)
	}
	whole = true
}

// list finds everything that the outcome depends on. A path that ends in /* is
// a folder.
func (w *Watcher) list() (all []string) {
	for _, p := range candidates(w.options) {
		switch {
		case p.folder:
			all = append(all, p.Path+"/*")
		case p.Text == "":
			all = append(all, p.Path)
		}
	}
	return append(append(all, w.also...), w.config.Reads...)
}

// stat sums up the state of all files. w.mu is held.
func (w *Watcher) stat() string {
	w.seen = w.seen[:0]
	before := time.Now().Add(-coarse)
	for _, dir := range w.folders { // first: what appears meanwhile, the next look sees
		w.seen = append(w.seen, see(dir))
	}
	var b []byte
	addState := func(path string) {
		st := see(path)
		switch there := st.Mode > 0; {
		case there:
			b = fmt.Appendf(b, "%s %d %d %d %o\n", path, st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Mode)
		case !isLink(path):
			return
		}
		w.seen = append(w.seen, st)
	}
	for _, path := range w.files {
		dir, folder := strings.CutSuffix(path, "/*")
		addState(dir)
		if !folder {
			continue
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries[:min(len(entries), maxConfigFiles)] {
			if isConfigName(e.Name()) {
				addState(filepath.Join(dir, e.Name()))
			}
		}
	}
	w.settled = !slices.ContainsFunc(w.seen, func(s seen) bool {
		return time.Unix(s.Mtim.Unix()).After(before) || time.Unix(s.Ctim.Unix()).After(before)
	})
	return string(b)
}

// arm watches the folder of each file, since a file may not be there yet and is
// mostly replaced by another of its name; where the folder is not there either,
// the nearest one that is. w.mu is held.
func (w *Watcher) arm() {
	w.paths = map[string]bool{}
	want := map[string]bool{}
	w.files, w.folders = w.list(), nil
	for _, path := range w.files {
		w.paths[path] = true
		path, folder := strings.CutSuffix(path, "/*")
		if folder {
			w.paths[path] = true
			w.near(path+"/x", want)
		}
		w.near(path, want)
		if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
			w.paths[real] = true // a link into a folder of dotfiles, say
			w.near(real, want)
		}
	}
	w.folders = append(w.folders, slices.Sorted(maps.Keys(want))...)
	if w.fs == nil {
		return
	}
	for dir := range w.dirs {
		if !want[dir] {
			_ = w.fs.Remove(dir) // it may be gone by itself
			delete(w.dirs, dir)
		}
	}
	for dir := range want {
		// Even one that is watched: it may be another of its name by now.
		if len(w.dirs) < maxWatches || w.dirs[dir] {
			if w.fs.Add(dir) == nil {
				w.dirs[dir] = true
			}
		}
	}
}

// near adds to want the nearest folder above path that exists, and notes the
// missing ones below it.
func (w *Watcher) near(path string, want map[string]bool) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			want[dir] = true
			return
		}
		w.paths[dir] = true
		if isLink(dir) {
			w.folders = append(w.folders, dir)
		}
		if dir == filepath.Dir(dir) {
			return
		}
	}
}

func isLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}
