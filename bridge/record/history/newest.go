package history

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// newest finds items in the lines of files, the newest first, and merges those of all files by their
// times.
type newest[T any] struct {
	record *Record
	skip   func(day string) (skip, end bool)
	// find returns the item that a line of a file completes. The lines come from the end of the file.
	find func(name string, s *scanned) (item T, when time.Time, ok bool)
}

// each calls yield for all items until it returns false.
func (n *newest[T]) each(yield func(T, error) bool) {
	days, err := n.record.days()
	if err != nil {
		var none T
		yield(none, err)
		return
	}
	for _, day := range slices.Backward(days) {
		skip, end := n.skip(day)
		if end {
			return
		} else if skip {
			continue
		}
		if more, err := n.day(day, yield); err != nil {
			var none T
			yield(none, err)
			return
		} else if !more {
			return
		}
	}
}

// day yields the items of a day. It returns false if no more are wanted.
func (n *newest[T]) day(day string, yield func(T, error) bool) (more bool, err error) {
	names, err := n.record.files(day)
	if err != nil {
		return false, err
	}
	var files []*ofFile[T]
	defer func() {
		for _, f := range files {
			n.record.skipped.Add(int64(f.lines.skipped))
			f.lines.close()
		}
	}()
	for _, name := range names {
		lines, err := openBackward(n.record.path(name))
		if errors.Is(err, os.ErrNotExist) {
			continue // retention has removed it
		} else if err != nil {
			return false, err
		}
		files = append(files, &ofFile[T]{name: name, lines: lines})
	}
	for {
		var latest *ofFile[T]
		for _, f := range files {
			if err := f.fill(n.find); err != nil {
				return false, err
			}
			if f.found && (latest == nil || f.when.After(latest.when)) {
				latest = f
			}
		}
		if latest == nil {
			return true, nil
		}
		latest.found = false
		if !yield(latest.item, nil) {
			return false, nil
		}
	}
}

// ofFile is how far a file was read.
type ofFile[T any] struct {
	name  string
	lines *backward
	item  T // if found
	when  time.Time
	found bool
	end   bool
}

// fill looks for the next item.
func (f *ofFile[T]) fill(find func(string, *scanned) (T, time.Time, bool)) error {
	for !f.found && !f.end {
		line, err := f.lines.next()
		if errors.Is(err, io.EOF) {
			f.end = true
			return nil
		} else if err != nil {
			return err
		}
		if s, ok := scan(line); ok && len(s.run) > 0 {
			f.item, f.when, f.found = find(f.name, &s)
		}
	}
	return nil
}

// Newest yields the entries of runs that are of some kinds, the newest first and without Values.
func (r *Record) Newest(kinds ...record.Kind) func(yield func(Entry, error) bool) {
	n := newest[Entry]{
		record: r,
		skip:   func(string) (skip, end bool) { return false, false },
		find: func(name string, s *scanned) (Entry, time.Time, bool) {
			if !slices.Contains(kinds, s.kind) {
				return Entry{}, time.Time{}, false
			}
			e, ok := newEntry(name, s.line)
			return e, e.Time, ok
		},
	}
	return n.each
}
