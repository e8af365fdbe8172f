package record

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

// tidy looks after the days before today: it notes the ends of files whose processes were killed, and
// removes the days that are too old, or for which there is no room.
func (dir folder) tidy(o *Options, now time.Time) error {
	days, err := dir.days()
	if err != nil {
		return err
	}
	today := now.Format(Day)
	var total int64
	for _, day := range days {
		if day < today {
			err = errors.Join(err, dir.seal(day, now))
		}
		_, size, sizeErr := dir.size(day)
		total, err = total+size, errors.Join(err, sizeErr)
	}
	oldest := now.AddDate(0, 0, 1-o.KeepDays).Format(Day)
	for _, day := range days {
		if day >= today || day >= oldest && total <= o.MaxBytes {
			break
		}
		removed, removeErr := dir.remove(day, now)
		total, err = total-removed, errors.Join(err, removeErr)
	}
	return err
}

// files returns the names of the files of entries of a day, without files.jsonl.
func (dir folder) files(day string) (names []string, err error) {
	all, err := os.ReadDir(filepath.Join(string(dir), day))
	for _, e := range all {
		if IsEntries(e.Name()) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// IsEntries reports whether a name is that of a file of entries.
func IsEntries(name string) bool {
	return strings.HasSuffix(name, entriesSuffix) && !strings.HasSuffix(name, valuesSuffix) && name != IndexName
}

// size returns how many files a day has, and their bytes.
func (dir folder) size(day string) (files int, total int64, err error) {
	all, err := os.ReadDir(filepath.Join(string(dir), day))
	for _, e := range all {
		if info, err := e.Info(); err == nil {
			files, total = files+1, total+info.Size()
		}
	}
	return files, total, err
}

// seal notes the ends of the files of a day that no process writes to, and whose ends are not noted.
func (dir folder) seal(day string, now time.Time) error {
	names, err := dir.files(day)
	if err != nil {
		return err
	}
	ended, err := dir.ended(day)
	// A command that began before midnight may still append to the file of that day.
	recent := now.Add(-time.Hour).Format(Day) <= day
	for _, name := range names {
		if shared := IsShared(name); !ended[name] && !(shared && recent) {
			err = errors.Join(err, dir.sealFile(day, name, now))
		}
	}
	return err
}

// ended returns the names of the files whose ends are noted.
func (dir folder) ended(day string) (map[string]bool, error) {
	ended := map[string]bool{}
	f, err := OpenFile(filepath.Join(string(dir), day, IndexName), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return ended, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := NewLines(f); ; {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return ended, nil
		} else if err != nil {
			return nil, err
		}
		if h, err := ReadHeader(line.Text); err == nil && h.Kind == KindFileEnd {
			if e, err := ReadEntry(h, line.Text); err == nil {
				ended[e.(*FileEnd).Name] = true
			}
		}
	}
}

func (dir folder) sealFile(day, name string, now time.Time) error {
	f, err := state.TryLock(filepath.Join(string(dir), day, name), 0, state.Exclusive)
	if errors.Is(err, state.ErrLocked) || errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	end := FileEnd{Name: name, Killed: !IsShared(name)}
	var first, last Hash
	for lines := NewLines(f); ; {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) || err == nil && line.Rest {
			break
		} else if err != nil {
			return err
		}
		if last = HashOf(line.Text); end.Lines == 0 {
			first = last
		}
		end.Lines = line.Number
	}
	if end.Lines == 0 {
		return nil
	}
	end.First, end.Last = first.String(), last.String()
	return dir.note(day, now, end)
}

// remove removes a day, unless a process writes to a file of it, and returns how many bytes are free
// now. It first notes that under today, so that the day is not missed.
func (dir folder) remove(day string, now time.Time) (int64, error) {
	names, err := dir.files(day)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		f, err := state.TryLock(filepath.Join(string(dir), day, name), 0, state.Exclusive)
		if errors.Is(err, state.ErrLocked) {
			return 0, nil
		}
		if err == nil {
			f.Close()
		}
	}
	files, size, err := dir.size(day)
	if err != nil {
		return 0, err
	}
	head, _ := dir.head(day) // of a list that is not whole there is none
	if err := dir.note(now.Format(Day), now, DayRemoved{Day: day, Head: head, Files: files, Bytes: size}); err != nil {
		return 0, err
	}
	return size, os.RemoveAll(filepath.Join(string(dir), day))
}
