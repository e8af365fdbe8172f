// Package history reads the record that package record writes: what a run did, which runs there were,
// whether the record is whole. It changes nothing.
//
// It reads files from their ends and keeps no index. A line that is torn, or that this version does
// not know, is passed over, and told of by Verify.
package history

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/internal/state"
)

// A Record is a folder of records. It is safe for concurrent use.
type Record struct {
	dir     string
	skipped atomic.Int64
}

// Skipped returns how many lines were passed over so far because they are longer than record.MaxLine.
// Entries are shorter: something else has written to the files.
func (r *Record) Skipped() int { return int(r.skipped.Load()) }

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

func (r *Record) path(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

// isOpen reports whether a process writes to a file.
func (r *Record) isOpen(name string) bool {
	f, err := os.Open(r.path(name))
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(state.TryLockFile(f, state.Shared), state.ErrLocked)
}
