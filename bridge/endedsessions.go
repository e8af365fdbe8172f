package bridge

import (
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/mcpproxy/text"
)

// Bounds on what is remembered of sessions.
const (
	maxGone     = 100       // names
	maxGoneFile = 256 << 10 // bytes of what another server has noted
	maxGoneAge  = 7 * 24 * time.Hour
)

// serverEnded is why the sessions of an earlier server are no more.
const serverEnded = "the server that kept it has ended"

// A goneBook remembers why sessions were ended, until the next call of their
// name is told. It is kept in a file too, with the sessions that go on, for
// the server after this one: whoever can lock such a file takes over what is
// in it, since its writer is gone.
type goneBook struct {
	dir string // none is kept if empty
	log *slog.Logger

	mu   sync.Mutex
	read bool
	file *os.File
	why  map[string]string // by name; serverEnded, for the file, of those that go on
	live map[string]bool
}

// note remembers why a session was ended.
func (g *goneBook) note(name, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.load()
	delete(g.live, name)
	for other := range g.why {
		if len(g.why) < maxGone {
			break
		}
		if !g.live[other] {
			delete(g.why, other)
		}
	}
	g.why[name] = why
	g.save()
}

// take tells once why the last session of a name was ended; "" if there was
// none.
func (g *goneBook) take(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.load()
	if g.live[name] {
		return ""
	}
	return g.why[name]
}

// began notes that there is a session of the name.
func (g *goneBook) began(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.load()
	g.live[name], g.why[name] = true, serverEnded
	g.save()
}

// load takes over what servers have noted that are gone.
func (g *goneBook) load() {
	if g.read {
		return
	}
	g.read, g.why, g.live = true, map[string]string{}, map[string]bool{}
	if g.dir == "" {
		return
	}
	files, _ := filepath.Glob(filepath.Join(g.dir, "*.json"))
	for _, path := range files[:min(len(files), maxGone)] {
		for name, why := range readGone(path) {
			if len(g.why) < maxGone && checkSession(name) == nil {
				g.why[name] = text.Bound(why, 500)
			}
		}
	}
	err := os.MkdirAll(g.dir, 0o700)
	if err == nil {
		g.file, err = os.CreateTemp(g.dir, "*.json")
	}
	if err == nil {
		err = unix.Flock(int(g.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		g.log.Debug("noting sessions", "err", err)
	}
}

// readGone reads and removes the file of a server that is gone.
func readGone(path string) (why map[string]string) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil // its server lives
	}
	_ = os.Remove(path)
	body, err := io.ReadAll(io.LimitReader(f, maxGoneFile))
	if err != nil || time.Since(st.ModTime()) > maxGoneAge || json.Unmarshal(body, &why) != nil {
		return nil
	}
	return why
}

// save writes all of it down.
func (g *goneBook) save() {
	if g.file == nil {
		return
	}
	body, err := json.Marshal(g.why)
	if err == nil {
		err = g.file.Truncate(0)
	}
	if err == nil {
		_, err = g.file.WriteAt(body, 0)
	}
	if err != nil {
		g.log.Debug("noting sessions", "err", err)
	}
}

// close leaves the file for the next server, unless nothing is in it.
func (g *goneBook) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.file == nil {
		return
	}
	if len(g.why) == 0 {
		_ = os.Remove(g.file.Name())
	}
	g.file.Close()
	g.file = nil
}
