// Package history reads the record that package record writes: what a run did, which runs there were,
// whether the record is whole. It changes nothing.
//
// It reads files from their ends and keeps no index. A line that is torn, or that this version does
// not know, is passed over, and told of by Verify.
package history

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/internal/state"
)

// A Record is a folder of records. It is safe for concurrent use.
type Record struct {
	dir     string
	skipped atomic.Int64

	mu    sync.Mutex
	newer map[string]int // versions, by the names of files
}

// Skipped returns how many lines were passed over so far because they are longer than record.MaxLine.
// Entries are shorter: something else has written to the files.
func (r *Record) Skipped() int { return int(r.skipped.Load()) }

// Newer returns the files with lines that were passed over so far because a newer toolcell wrote them,
// and says so of each: "DAY/NAME: written by a newer toolcell (record version 2)".
func (r *Record) Newer() (all []Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(r.newer)) {
		all = append(all, Finding{File: name, Text: (&record.VersionError{Version: r.newer[name]}).Error()})
	}
	return all
}

// passOver takes in that a line is no entry.
func (r *Record) passOver(name string, line []byte) {
	_, err := record.ReadHeader(line)
	if e, ok := errors.AsType[*record.VersionError](err); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.newer == nil {
			r.newer = map[string]int{}
		}
		r.newer[name] = max(r.newer[name], e.Version)
	}
}

// Open returns the record in a folder, which may not be there yet.
func Open(dir string) *Record { return &Record{dir: dir} }

// days returns the days that have records, the oldest first.
func (r *Record) days() (days []string, err error) {
	all, err := os.ReadDir(r.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range all {
		if _, err := time.Parse(record.Day, e.Name()); err == nil && e.IsDir() {
			days = append(days, e.Name())
		}
	}
	return days, err
}

// files returns the names of the files of entries of a day, with the day.
func (r *Record) files(day string) (names []string, err error) {
	all, err := os.ReadDir(filepath.Join(r.dir, day))
	for _, e := range all {
		if record.IsEntries(e.Name()) && e.Type().IsRegular() {
			names = append(names, day+"/"+e.Name())
		}
	}
	return names, err
}

// open opens a file to read it.
func (r *Record) open(name string) (*os.File, error) { return openFile(r.path(name)) }

// openFile opens a file to read it. What is in its place and no file is not there: Verify tells of it.
func openFile(path string) (*os.File, error) {
	f, err := record.OpenFile(path, os.O_RDONLY)
	if errors.Is(err, record.ErrNotRegular) {
		return nil, os.ErrNotExist
	}
	return f, err
}

func (r *Record) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

// isOpen reports whether a process writes to a file.
func (r *Record) isOpen(name string) bool {
	f, err := r.open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(state.TryLockFile(f, state.Shared), state.ErrLocked)
}
