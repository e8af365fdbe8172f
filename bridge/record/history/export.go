package history

import (
	"errors"
	"io"
	"iter"
	"os"

	"github.com/toolcell/toolcell/bridge/record"
)

// Entries yields all entries of the runs that fit, with their Values: the oldest first, merged by time.
// Those of no run are yielded, too, unless it is filtered by more than the time. It reads the record
// twice, once to find the runs.
func (r *Record) Entries(f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		wanted := map[string]bool{"": f == Filter{From: f.From, To: f.To}}
		for run, err := range r.Runs(f) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			wanted[run.ID] = true
		}
		days, err := r.days()
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for _, day := range days {
			if more, err := r.entriesOfDay(day, wanted, f.ofTime(yield)); err != nil {
				yield(Entry{}, err)
				return
			} else if !more {
				return
			}
		}
	}
}

// ofTime leaves out the entries of no run that are of another time. Those of a run go by its beginning.
func (f *Filter) ofTime(yield func(Entry, error) bool) func(Entry, error) bool {
	return func(e Entry, err error) bool {
		other := e.Run == "" && err == nil && !f.fitsTime(e.Time)
		return other || yield(e, err)
	}
}

// entriesOfDay yields the entries of some runs. It returns false if no more are wanted.
func (r *Record) entriesOfDay(day string, wanted map[string]bool, yield func(Entry, error) bool) (more bool, err error) {
	names, err := r.files(day)
	if err != nil {
		return false, err
	}
	var files []*forward
	defer func() {
		for _, f := range files {
			f.close()
		}
	}()
	for _, name := range names {
		f, err := r.openForward(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return false, err
		}
		files = append(files, f)
	}
	for {
		var first *forward
		for _, f := range files {
			if err := f.fill(wanted); err != nil {
				return false, err
			}
			if f.found && (first == nil || f.next.Time.Before(first.next.Time)) {
				first = f
			}
		}
		if first == nil {
			return true, nil
		}
		first.found = false
		if !yield(first.next, nil) {
			return false, nil
		}
	}
}

// forward reads a file and its values, the first entry first.
type forward struct {
	record *Record
	name   string
	file   *os.File
	lines  *record.Lines
	values *values
	next   Entry // if found
	found  bool
	end    bool
}

func (r *Record) openForward(name string) (*forward, error) {
	file, err := r.open(name)
	if err != nil {
		return nil, err
	}
	vals, err := openValues(r.path(record.ValuesName(name)))
	if err != nil {
		file.Close()
		return nil, err
	}
	return &forward{record: r, name: name, file: file, lines: record.NewLines(file), values: vals}, nil
}

func (f *forward) close() {
	f.file.Close()
	f.values.close()
}

// fill looks for the next entry of a run that is wanted.
func (f *forward) fill(wanted map[string]bool) error {
	for !f.found && !f.end {
		line, err := f.lines.Next()
		if errors.Is(err, io.EOF) {
			f.end = true
			return nil
		} else if err != nil {
			return err
		}
		if line.Long {
			f.record.skipped.Add(1)
			continue
		}
		s, ok := scan(line.Text)
		if !ok {
			f.record.passOver(f.name, line.Text)
		}
		if !ok || !wanted[string(s.run)] {
			continue
		}
		if f.next, f.found = newEntry(f.name, line.Text); f.found {
			if err := f.join(); err != nil {
				return err
			}
		}
	}
	return nil
}

// join gives the entry its values. Those of entries before it, which were passed over, come first.
func (f *forward) join() error {
	one := []Entry{f.next}
	for f.values.next != nil && f.values.next.Seq <= f.next.Seq {
		if f.values.next.Seq == f.next.Seq {
			join(one, *f.values.next)
		}
		if err := f.values.advance(); err != nil {
			return err
		}
	}
	f.next = one[0]
	return nil
}
