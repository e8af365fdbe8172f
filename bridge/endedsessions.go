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
	maxEnded     = 100       // names
	maxEndedFile = 256 << 10 // bytes of what another server has noted
	maxEndedAge  = 7 * 24 * time.Hour
)

// serverEnded is why the sessions of an earlier server are no more.
const serverEnded = "the server that kept it has ended"

// endedSessions remembers why sessions were ended, so that the next call of their
// name can say it. It is kept in a file too, with the sessions that go on, for the
// server after this one: a server that can lock such a file takes over what is in
// it, since its writer is gone.
type endedSessions struct {
	dir string // none is kept if empty
	log *slog.Logger

	mu   sync.Mutex
	read bool
	file *os.File
	whys map[string]string // by name; serverEnded, for the file, of those that go on
	live map[string]bool
}

// add remembers why a session was ended.
func (e *endedSessions) add(name, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.load()
	delete(e.live, name)
	for other := range e.whys {
		if len(e.whys) < maxEnded {
			break
		}
		if !e.live[other] {
			delete(e.whys, other)
		}
	}
	e.whys[name] = why
	e.save()
}

// why returns why the last session of a name was ended; "" if there was none, or
// if it continues.
func (e *endedSessions) why(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.load()
	if e.live[name] {
		return ""
	}
	return e.whys[name]
}

// begin notes that there is a session of the name.
func (e *endedSessions) begin(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.load()
	e.live[name], e.whys[name] = true, serverEnded
	e.save()
}

// keep notes what the server after this one has to say of a name that is not a
// session's: a run that waits.
func (e *endedSessions) keep(name, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.load()
	e.live[name], e.whys[name] = true, why
	e.save()
}

// load takes over the files of servers that are gone.
func (e *endedSessions) load() {
	if e.read {
		return
	}
	e.read, e.whys, e.live = true, map[string]string{}, map[string]bool{}
	if e.dir == "" {
		return
	}
	files, _ := filepath.Glob(filepath.Join(e.dir, "*.json"))
	for _, path := range files[:min(len(files), maxEnded)] {
		for name, why := range readEnded(path) {
			if len(e.whys) < maxEnded && checkSession(name) == nil {
				e.whys[name] = text.Bound(why, 500)
			}
		}
	}
	err := os.MkdirAll(e.dir, 0o700)
	if err == nil {
		e.file, err = os.CreateTemp(e.dir, "*.json")
	}
	if err == nil {
		err = unix.Flock(int(e.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		e.log.Debug("noting sessions", "err", err)
	}
}

// readEnded reads and removes the file of a server that is gone.
func readEnded(path string) (why map[string]string) {
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
	body, err := io.ReadAll(io.LimitReader(f, maxEndedFile))
	if err != nil || time.Since(st.ModTime()) > maxEndedAge || json.Unmarshal(body, &why) != nil {
		return nil
	}
	return why
}

// save writes all of it down.
func (e *endedSessions) save() {
	if e.file == nil {
		return
	}
	body, err := json.Marshal(e.whys)
	if err == nil {
		err = e.file.Truncate(0)
	}
	if err == nil {
		_, err = e.file.WriteAt(body, 0)
	}
	if err != nil {
		e.log.Debug("noting sessions", "err", err)
	}
}

// close leaves the file for the next server, unless nothing is in it.
func (e *endedSessions) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.file == nil {
		return
	}
	if len(e.whys) == 0 {
		_ = os.Remove(e.file.Name())
	}
	e.file.Close()
	e.file = nil
}
