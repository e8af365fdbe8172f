// Package endings remembers why sessions and waiting runs have ended, so that the next call
// that names one can say it.
//
// It promises that the server after this one can say it too, also if this one is killed: it
// is kept in a file, with the sessions and runs that go on, and a server that can lock such
// a file takes over what is in it, since its writer is gone. It does not promise to
// remember all: the number, size and age of what is kept are bounded.
package endings

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// Bounds on what is remembered.
const (
	maxEnded     = 100       // names
	maxEndedFile = 256 << 10 // bytes of what another server has noted
	maxEndedAge  = 7 * 24 * time.Hour
)

// serverEnded is why the sessions of an earlier server are no more.
const serverEnded = "the server that kept it has ended"

// A Store has the endings of one server. It is safe for concurrent use.
type Store struct {
	dir string // none is kept if empty
	log *slog.Logger

	mu   sync.Mutex
	read bool
	file *os.File
	whys map[string]string // by name; for those that go on, what the next server has to say
	live map[string]bool
}

// Open returns the endings that are kept in a folder, which is read when it is needed. No
// file is kept if dir is empty.
func Open(dir string, log *slog.Logger) *Store { return &Store{dir: dir, log: log} }

// CheckName bounds a name, which is shown in notes.
func CheckName(name string) error {
	if utf8.RuneCountInString(name) > 64 || !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fmt.Errorf("session %q is not a name for one: at most 64 characters that can be printed", text.Bound(name, 80))
	}
	return nil
}

// Add remembers why a session or a run was ended.
func (s *Store) Add(name, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	delete(s.live, name)
	for other := range s.whys {
		if len(s.whys) < maxEnded {
			break
		}
		if !s.live[other] {
			delete(s.whys, other)
		}
	}
	s.whys[name] = why
	s.save()
}

// Why returns why the last session of a name was ended; "" if there was none, or
// if it continues.
func (s *Store) Why(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	if s.live[name] {
		return ""
	}
	return s.whys[name]
}

// Begin notes that there is a session of the name.
func (s *Store) Begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	s.live[name], s.whys[name] = true, serverEnded
	s.save()
}

// Keep notes a run that waits, and what the server after this one has to say of it.
func (s *Store) Keep(name, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	s.live[name], s.whys[name] = true, why
	s.save()
}

// load takes over the files of servers that are gone.
func (s *Store) load() {
	if s.read {
		return
	}
	s.read, s.whys, s.live = true, map[string]string{}, map[string]bool{}
	if s.dir == "" {
		return
	}
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.json"))
	for _, path := range files[:min(len(files), maxEnded)] {
		for name, why := range readEnded(path) {
			if len(s.whys) < maxEnded && CheckName(name) == nil {
				s.whys[name] = text.Bound(why, 500)
			}
		}
	}
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil {
		s.file, err = os.CreateTemp(s.dir, "*.json")
	}
	if err == nil {
		err = state.TryLockFile(s.file, state.Exclusive)
	}
	if err != nil {
		s.log.Debug("noting sessions", "err", err)
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
	if err != nil || !st.Mode().IsRegular() || state.TryLockFile(f, state.Exclusive) != nil {
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
func (s *Store) save() {
	if s.file == nil {
		return
	}
	body, err := json.Marshal(s.whys)
	if err == nil {
		err = s.file.Truncate(0)
	}
	if err == nil {
		_, err = s.file.WriteAt(body, 0)
	}
	if err != nil {
		s.log.Debug("noting sessions", "err", err)
	}
}

// Close leaves the file for the next server, unless nothing is in it.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return
	}
	if len(s.whys) == 0 {
		_ = os.Remove(s.file.Name())
	}
	s.file.Close()
	s.file = nil
}
