package run

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
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

// exitReasons remember why sessions and waiting runs have ended, so that the next call that names one
// can say it. They are kept in a file, with the sessions and runs that go on, so that the server
// after this one can say it too, also if this one is killed: a server that can lock such a file
// takes over what is in it, since its writer is gone. The number, size and age of what is kept
// are bounded.
type exitReasons struct {
	dir string // that is read when it is needed; nothing is kept if it is empty
	log *slog.Logger

	mu      sync.Mutex
	read    bool
	file    *os.File
	reasons map[string]string // by name; for those that go on, what the next server has to say
	live    map[string]bool
}

// checkSessionName bounds a name, which is shown in notes.
func checkSessionName(name string) error {
	if utf8.RuneCountInString(name) > 64 || !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fmt.Errorf("session %q is not a name for one: at most 64 characters that can be printed", text.Bound(name, 80))
	}
	return nil
}

// add remembers why a session or a run was ended.
func (s *exitReasons) add(name, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	delete(s.live, name)
	for other := range s.reasons {
		if len(s.reasons) < maxEnded {
			break
		}
		if !s.live[other] {
			delete(s.reasons, other)
		}
	}
	s.reasons[name] = why
	s.save()
}

// why returns why the last session of a name was ended; "" if there was none, or
// if it continues.
func (s *exitReasons) why(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	if s.live[name] {
		return ""
	}
	if s.reasons[name] == "" && s.takeOver() { // from a server that was still ending when this one began
		s.save()
	}
	return s.reasons[name]
}

// keep notes a session that begins, or a run that waits, and what the server after this one has
// to say of it.
func (s *exitReasons) keep(name, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load()
	s.live[name], s.reasons[name] = true, why
	s.save()
}

// load takes over what other servers have noted, and makes the file of this one.
func (s *exitReasons) load() {
	if s.read {
		return
	}
	s.read, s.reasons, s.live = true, map[string]string{}, map[string]bool{}
	if s.dir == "" {
		return
	}
	s.takeOver()
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

// takeOver takes over the files of servers that are gone, and reports whether there was something in one.
func (s *exitReasons) takeOver() (some bool) {
	if s.dir == "" {
		return false
	}
	files, _ := state.Match(s.dir, "*.json")
	for _, path := range files[:min(len(files), maxEnded)] {
		for name, why := range readEnded(path) {
			if len(s.reasons) < maxEnded && checkSessionName(name) == nil {
				s.reasons[name] = text.Bound(why, 500)
				some = true
			}
		}
	}
	return some
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
func (s *exitReasons) save() {
	if s.file == nil {
		return
	}
	body, err := json.Marshal(s.reasons)
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

// close leaves the file for the next server, unless nothing is in it.
func (s *exitReasons) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return
	}
	if len(s.reasons) == 0 {
		_ = os.Remove(s.file.Name())
	}
	s.file.Close()
	s.file = nil
}
