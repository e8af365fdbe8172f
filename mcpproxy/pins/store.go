package pins

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

const (
	suffix      = ".json"
	maxFile     = 64 << 20 // what 20,000 tools need that have the longest names, and were all replaced
	maxAllShown = 2 << 20  // bytes of definitions that are kept of one server; of further ones only digests
	unusedFor   = 90 * 24 * time.Hour
	maxServers  = 1000            // in the folder
	lockWithin  = 5 * time.Second // else a process that was stopped would stop all others
)

// A Store is a folder of pins. Several processes may use it at the same time: files are
// replaced as a whole, under one lock. Without a folder nothing is pinned.
type Store struct{ Dir string }

// File is where the pins of a server are.
func (s Store) File(key string) string { return filepath.Join(s.Dir, key+suffix) }

// Read returns the pins of a server, nil if it has none yet.
func (s Store) Read(key string) (*Server, error) {
	if s.Dir == "" {
		return nil, nil
	}
	data, err := state.ReadRegular(s.File(key), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var server Server
	if err == nil {
		err = json.Unmarshal(data, &server)
	}
	if err == nil {
		err = server.check()
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %s; remove it, and the tools of this server are pinned anew", s.File(key), state.Reason(err))
	}
	return &server, nil
}

// check returns an error for a file that this package did not write.
func (s *Server) check() error {
	if s.Since.IsZero() { // null is one, and each tool would be new
		return errors.New("it does not say since when")
	}
	for _, t := range s.Tools {
		if t == nil || t.Pinned == nil && t.Seen == nil {
			return errors.New("a tool in it has no definition")
		}
	}
	return nil
}

// Stamp identifies a state of a server's file; it is zero if there is no file.
func (s Store) Stamp(key string) state.Stamp {
	if s.Dir == "" {
		return state.Stamp{}
	}
	stamp, _ := state.StampOf(s.File(key))
	return stamp
}

// Record compares the current tools of a server with its pins, and keeps the differences. The
// first time it pins all tools. kept are pins of this process that could not be written
// before: Record uses them, unless another process has pinned the tools meanwhile, and tries
// again to write them. It may return pins together with an error.
func (s Store) Record(key, name string, kept *Server, all []Definition) (*Server, error) {
	fresh := kept
	if fresh == nil {
		fresh = pinned(name, all, time.Now())
	} else {
		fresh.record(all, time.Now())
	}
	if s.Dir == "" {
		return fresh, nil
	}
	now, err := s.Read(key)
	if err != nil {
		return kept, err
	}
	if now != nil && !now.record(all, time.Now()) {
		state.Touch(s.File(key))
		return now, nil
	}
	now = cmp.Or(now, fresh) // which it is if there is no lock
	err = s.change(key, fresh, func(server *Server) bool {
		now = server
		return now == fresh || now.record(all, time.Now())
	})
	return now, err
}

// change has f edit the pins of a server under the lock, or fresh if it has none. They are
// written if f says so. f is not called if there are none at all.
func (s Store) change(key string, fresh *Server, f func(*Server) (changed bool)) error {
	ctx, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	unlock, err := state.Lock(ctx, filepath.Join(s.Dir, "lock"), state.Exclusive)
	if err != nil {
		return fmt.Errorf("keeping pins: %w", err)
	}
	defer unlock()
	server, err := s.Read(key)
	if server = cmp.Or(server, fresh); err != nil || server == nil || !f(server) {
		return err
	}
	server.bound()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(server); err != nil {
		return err
	}
	if err := state.Replace(s.File(key), b.Bytes(), state.Options{Locked: true}); err != nil {
		return fmt.Errorf("keeping pins: %w", err)
	}
	return nil
}

// pinned returns pins of all tools.
func pinned(name string, all []Definition, now time.Time) *Server {
	s := &Server{Name: name, Since: now.UTC().Truncate(time.Second), Tools: map[string]*Tool{}}
	for _, d := range all {
		s.Tools[d.Name] = &Tool{Pinned: newVersion(d, s.Since)}
	}
	return s
}

func newVersion(d Definition, now time.Time) *Version {
	return &Version{Digest: d.Digest, Since: now.UTC().Truncate(time.Second), Shown: d.Shown, Hidden: d.Hidden, Hints: d.Hints}
}

// record compares the current tools of the server, and reports whether anything has changed
// since the last time.
func (s *Server) record(all []Definition, now time.Time) (changed bool) {
	have := make(map[string]bool, len(all))
	room := s.room()
	for _, d := range all {
		have[d.Name] = true
		if s.recordTool(d, now) {
			changed = true
		}
		if v := s.Tools[d.Name].Now(); v.Shown == nil && d.Shown != nil && d.Shown.size() <= room {
			v.Shown, v.Hidden = d.Shown, d.Hidden
			room -= d.Shown.size()
			changed = true
		}
	}
	for name, t := range s.Tools {
		switch {
		case have[name]:
		case t.Pinned == nil:
			delete(s.Tools, name)
			changed = true
		case t.Gone.IsZero():
			t.Gone, t.Seen, t.ReadsOnly = now.UTC().Truncate(time.Second), nil, false
			changed = true
		}
	}
	return changed
}

func (s *Server) recordTool(d Definition, now time.Time) (changed bool) {
	t := s.Tools[d.Name]
	switch {
	case t == nil:
		if s.Tools == nil {
			s.Tools = map[string]*Tool{}
		}
		s.Tools[d.Name] = &Tool{Seen: newVersion(d, now)}
		return true
	case t.Pinned != nil && t.Pinned.Digest == d.Digest:
		changed = t.Seen != nil || !t.Gone.IsZero() || t.ReadsOnly
		t.Seen, t.Gone, t.ReadsOnly = nil, time.Time{}, false
	case t.ReadsOnly && !d.Hints.believed(Hints{ReadOnly: true}):
		t.Seen, t.Gone, t.ReadsOnly = newVersion(d, now), time.Time{}, false
		return true
	case t.Seen == nil || t.Seen.Digest != d.Digest:
		t.Seen, t.Gone = newVersion(d, now), time.Time{}
		return true
	}
	return changed
}

// room returns how many more bytes of definitions fit.
func (s *Server) room() int {
	room := maxAllShown
	for _, t := range s.Tools {
		for _, v := range []*Version{t.Pinned, t.Seen} {
			if v != nil && v.Shown != nil {
				room -= v.Shown.size()
			}
		}
	}
	return room
}

// bound drops the definitions that do not fit, those of unchanged tools first.
func (s *Server) bound() {
	room := maxAllShown
	for _, differs := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(s.Tools)) {
			t := s.Tools[name]
			if (t.Seen != nil) != differs {
				continue
			}
			for _, v := range []*Version{t.Pinned, t.Seen} {
				if v == nil || v.Shown == nil {
					continue
				}
				if room -= v.Shown.size(); room < 0 {
					room += v.Shown.size()
					v.Shown = nil
				}
			}
		}
	}
}

// Accept pins one tool as the server has it now, or all of them if tool is empty, and
// returns how they had differed, by name. Tools that are gone are forgotten.
func (s Store) Accept(key, tool string) (taken map[string]Tool, err error) {
	taken = map[string]Tool{}
	if s.Dir == "" {
		return taken, nil
	}
	err = s.change(key, nil, func(server *Server) bool {
		for name, t := range server.Tools {
			if t.Change() == Unchanged || tool != "" && name != tool {
				continue
			}
			taken[name] = *t
			if t.Seen == nil {
				delete(server.Tools, name)
				continue
			}
			server.Tools[name] = &Tool{Pinned: t.Seen}
		}
		return len(taken) > 0
	})
	return taken, err
}

// AcceptHint accepts the server's claim that a tool only reads, if its definition still has
// this digest. Nothing else of the definition is accepted.
func (s Store) AcceptHint(key, tool, digest string) error {
	if s.Dir == "" {
		return errors.New("there is no folder to keep pins in")
	}
	found := false
	err := s.change(key, nil, func(server *Server) bool {
		t := server.Tools[tool]
		found = t != nil && t.Now().Digest == digest && t.Now().Hints.believed(Hints{ReadOnly: true})
		if found {
			t.ReadsOnly = true
		}
		return found
	})
	if err == nil && !found {
		err = errors.New("the server defines the tool in another way by now")
	}
	return err
}

// Note returns the names of shown tools that differ from their pins or have hidden characters,
// and that no run has noted yet. It marks them as noted.
func (s Store) Note(key string, shown func(tool string) bool) (server *Server, names []string, err error) {
	if s.Dir == "" {
		return nil, nil, nil
	}
	err = s.change(key, nil, func(now *Server) bool {
		server, names = now, now.Unnoted(shown)
		for _, name := range names {
			server.Tools[name].Now().Noted = true
		}
		return len(names) > 0
	})
	return server, names, err
}

// Unnoted returns the names of the tools that Note would.
func (s *Server) Unnoted(shown func(tool string) bool) (names []string) {
	for name, t := range s.Tools {
		if v := t.Now(); shown(name) && !v.Noted && t.Gone.IsZero() && (t.Seen != nil || len(v.Hidden) > 0) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Prune removes the pins of servers that have not been used for a long time, and of the least
// recently used ones if there are too many, except those of keep.
func (s Store) Prune(keep map[string]bool) {
	if s.Dir != "" {
		state.Folder{Dir: s.Dir, Suffix: suffix, Unused: unusedFor, Max: maxServers}.Prune(keep)
	}
}
