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
	// rest returns the items that are not complete when a file was read to its beginning, and ahead
	// whether it is read that far before one of its items is yielded. Both may be nil.
	rest  func(name string) ([]found[T], error)
	ahead func(name string) bool
}

// found is an item with the time that it has among others.
type found[T any] struct {
	item T
	when time.Time
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
			if err := n.fill(f); err != nil {
				return false, err
			}
			if len(f.items) > 0 && (latest == nil || f.items[0].when.After(latest.items[0].when)) {
				latest = f
			}
		}
		if latest == nil {
			return true, nil
		}
		item := latest.items[0].item
		latest.items = latest.items[1:]
		if !yield(item, nil) {
			return false, nil
		}
	}
}

// ofFile is how far a file was read.
type ofFile[T any] struct {
	name  string
	lines *backward
	items []found[T] // that were not yielded
	end   bool
}

// fill looks for the next item.
func (n *newest[T]) fill(f *ofFile[T]) error {
	for !f.end && (len(f.items) == 0 || n.ahead != nil && n.ahead(f.name)) {
		line, err := f.lines.next()
		if errors.Is(err, io.EOF) {
			return n.finish(f)
		} else if err != nil {
			return err
		}
		s, ok := scan(line)
		if !ok {
			n.record.passOver(f.name, line)
		}
		if !ok || len(s.run) == 0 && s.kind != record.KindTorn {
			continue
		}
		if item, when, ok := n.find(f.name, &s); ok {
			f.items = append(f.items, found[T]{item, when})
		}
	}
	return nil
}

// finish adds what is not complete when a file was read to its beginning.
func (n *newest[T]) finish(f *ofFile[T]) error {
	f.end = true
	if n.rest == nil {
		return nil
	}
	rest, err := n.rest(f.name)
	f.items = append(f.items, rest...)
	slices.SortStableFunc(f.items, func(a, b found[T]) int { return b.when.Compare(a.when) })
	return err
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
