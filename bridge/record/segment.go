package record

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/state"
)

// Suffixes of the names of files.
const (
	entriesSuffix = ".jsonl"
	valuesSuffix  = ".values.jsonl"
)

// ValuesName returns the name of the file of values beside a file of entries.
func ValuesName(name string) string { return strings.TrimSuffix(name, entriesSuffix) + valuesSuffix }

// A segment is the pair of files that a journal appends to on one day: entries and values.
type segment struct {
	dir    folder
	host   string
	day    string
	name   string // of the file of entries, in the folder of the day
	shared bool   // by processes: each entry takes the file's lock
	wrap   func(io.Writer) io.Writer

	entries *chainFile
	file    *os.File // of entries; nil if it is shared
	size    int64    // of a shared file, after the last entry of this process
	number  int      // of a shared file: those before are not to be appended to
	listed  int64    // size of files.jsonl when it was last read
	begun   bool     // this process made the file

	values     io.Writer // nil until there is a value
	valuesFile *os.File
	valuesTorn bool
}

// openSegment makes the file of a process and lists it. The lock of the file, which ends with the
// process, tells others that it is being written to. A shared file is opened with each entry.
func openSegment(o *Options, now time.Time) (s *segment, err error) {
	s = &segment{dir: folder(o.Dir), host: o.Host, day: now.Format(Day), shared: o.Shared, wrap: o.wrap}
	if err := makeFolder(s.path("")); err != nil {
		return nil, err
	}
	if s.shared {
		s.number, s.name = 1, sharedName(o.Host, 1)
		return s, nil
	}
	s.name = fmt.Sprintf("%s-%d-%s%s", o.Host, os.Getpid(), now.Format("150405.000000000"), entriesSuffix)
	s.file, err = os.OpenFile(s.path(s.name), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = lockNew(s.file); err == nil {
		err = s.list(now)
	}
	if err != nil {
		s.file.Close()
		_ = os.Remove(s.path(s.name)) // it is empty
		return nil, err
	}
	s.entries = newChainFile(s.wrap(s.file), s.fullName())
	return s, nil
}

// lockNew locks a file that was just made. A reader that looks whether it is being written to may have
// its lock for a moment.
func lockNew(f *os.File) error {
	for until := time.Now().Add(lockWithin); ; time.Sleep(time.Millisecond) {
		err := state.TryLockFile(f, state.Exclusive)
		if !errors.Is(err, state.ErrLocked) || time.Now().After(until) {
			return err
		}
	}
}

// list notes that there is a file, which has no entry yet: one that has some and is not listed was put
// there by others.
func (s *segment) list(now time.Time) error {
	s.begun = true
	return s.dir.note(s.day, now, FileBegin{Name: s.name})
}

func (s *segment) path(name string) string { return filepath.Join(string(s.dir), s.day, name) }

// fullName is the name of the file of entries with the folder of its day.
func (s *segment) fullName() string { return filepath.Join(s.day, s.name) }

func sizeOf(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// appendValues writes the values of an entry, with one write(2).
func (s *segment) appendValues(run string, seq uint64, values [][]byte) error {
	if err := s.openValues(); err != nil {
		return err
	}
	var b []byte
	if s.valuesTorn {
		b = append(b, '\n')
	}
	for _, v := range values {
		b = append(b, `{"run":"`...)
		b = append(b, run...)
		b = append(b, `","seq":`...)
		b = strconv.AppendUint(b, seq, 10)
		b = append(b, ',')
		b = append(b, v[1:]...)
		b = append(b, '\n')
	}
	n, err := s.values.Write(b)
	s.valuesTorn = n > 0 && n < len(b) || n == 0 && s.valuesTorn
	return err
}

func (s *segment) openValues() error {
	if s.values != nil {
		return nil
	}
	f, err := OpenFile(s.path(ValuesName(s.name)), os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	s.valuesFile, s.values = f, s.wrap(f)
	if size, err := sizeOf(f); err == nil && size > 0 {
		var last [1]byte
		_, err := f.ReadAt(last[:], size-1)
		s.valuesTorn = err == nil && last[0] != '\n'
	}
	return nil
}

func (s *segment) closeValues() error {
	f := s.valuesFile
	s.values, s.valuesFile, s.valuesTorn = nil, nil, false
	if f == nil {
		return nil
	}
	return f.Close()
}

// close notes what is missing and that the file of a process is complete, and lets go of it.
func (s *segment) close(now time.Time, missing Torn) (err error) {
	defer func() { err = errors.Join(err, s.closeValues()) }()
	if s.shared {
		return nil
	}
	defer func() { err = errors.Join(err, s.file.Close()) }()
	c := s.entries
	if c.torn() > 0 || missing != (Torn{}) {
		if err := c.mend(missing, now); err != nil {
			return err
		}
	}
	return s.dir.note(s.day, now, FileEnd{Name: s.name, First: c.first.String(), Last: c.prev.String(), Lines: c.lines})
}
