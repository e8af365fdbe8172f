package history

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// Follow yields the entries of runs that are written from now on, and Pins of no run, until ctx ends. It looks for them at
// every interval, in all files, also those that begin meanwhile and those of the next day. Entries of
// one look are in the order of their times. They come without Values, which may be written after them.
func (r *Record) Follow(ctx context.Context, interval time.Duration) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		f := follower{record: r, at: map[string]int64{}}
		if err := f.skip(); err != nil {
			yield(Entry{}, err)
			return
		}
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			entries, err := f.look()
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}
}

// A follower knows how far it has read.
type follower struct {
	record *Record
	at     map[string]int64 // by the names of files
	from   string           // the first day that is looked at
}

// skip goes to the ends of what there is. Files of the day before are still written to by processes
// that had no entry since.
func (f *follower) skip() error {
	days, err := f.record.days()
	if err != nil {
		return err
	}
	if len(days) > 0 {
		f.from = days[max(0, len(days)-2)]
	}
	return f.each(func(name string, size int64) error {
		end, err := f.lastEnd(name, size)
		f.at[name] = end
		return err
	})
}

// lastEnd returns where the last whole line of a file ends.
func (f *follower) lastEnd(name string, size int64) (int64, error) {
	file, err := f.record.open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	tail := make([]byte, min(size, record.MaxLine))
	from := size - int64(len(tail))
	if _, err := file.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	return from + int64(bytes.LastIndexByte(tail, '\n')+1), nil
}

// each calls do for the files of the days that are looked at, which may grow.
func (f *follower) each(do func(name string, size int64) error) error {
	days, err := f.record.days()
	if err != nil {
		return err
	}
	for _, day := range days {
		if day < f.from {
			continue
		}
		names, err := f.record.files(day)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for _, name := range names {
			info, err := os.Stat(f.record.path(name))
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err == nil {
				err = do(name, info.Size())
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// look returns the entries that are new.
func (f *follower) look() (entries []Entry, err error) {
	err = f.each(func(name string, size int64) error {
		if size <= f.at[name] {
			return nil
		}
		some, end, err := f.read(name)
		f.at[name] = end
		entries = append(entries, some...)
		return err
	})
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	return entries, err
}

// read returns the new entries of a file, and where the last whole line ends.
func (f *follower) read(name string) (entries []Entry, end int64, err error) {
	start := f.at[name]
	end = start
	file, err := f.record.open(name)
	if err != nil {
		return nil, start, err
	}
	defer file.Close()
	if _, err := file.Seek(start, io.SeekStart); err != nil {
		return nil, start, err
	}
	for lines := record.NewLines(file); ; {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) || err == nil && line.Rest {
			return entries, end, nil
		} else if err != nil {
			return nil, start, err
		}
		end = start + line.At + int64(len(line.Text)) + 1
		if line.Long {
			f.record.skipped.Add(1)
			continue
		}
		e, ok := newEntry(name, line.Text)
		if !ok {
			f.record.passOver(name, line.Text)
		} else if e.Run != "" || e.Kind == record.KindPin {
			entries = append(entries, e)
		}
	}
}
