package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// lockWithin is how long an entry waits for the lock of a file that processes share.
const lockWithin = 5 * time.Second

// maxUnread is how far back the last whole entry of a file may be.
const maxUnread = 4 << 20

// sharedFile is the form of names that sharedName returns.
var sharedFile = regexp.MustCompile(`-exec(-[0-9]+)?\.jsonl$`)

// sharedName returns the name of the file that commands on a host share, the first or a later one of
// a day.
func sharedName(host string, number int) string {
	if number == 1 {
		return host + "-exec" + entriesSuffix
	}
	return fmt.Sprintf("%s-exec-%d%s", host, number, entriesSuffix)
}

// IsShared reports whether a name is that of a file of entries that commands share.
func IsShared(name string) bool { return sharedFile.MatchString(name) }

// maxShared bounds how many files commands share on a day.
const maxShared = 100

// lock lets this process alone append, until release is called. It goes on to another shared file
// if one is complete, as after a clock went back, or is that of a newer toolcell.
func (s *segment) lock(now time.Time) (release func(), err error) {
	if !s.shared {
		return func() {}, nil
	}
	for {
		release, err = s.lockShared(now)
		newer := (*VersionError)(nil)
		if s.number == maxShared || !errors.Is(err, errComplete) && !errors.As(err, &newer) {
			return release, err
		}
		s.number++
		s.name = sharedName(s.host, s.number)
		s.entries = nil
		if err := s.closeValues(); err != nil {
			return nil, err
		}
	}
}

// errComplete is of a file whose end is noted: a line that is added later looks like one of others.
var errComplete = errors.New("the file is complete")

// lockShared locks the file of the segment's name, unless it is not to be appended to.
func (s *segment) lockShared(now time.Time) (release func(), err error) {
	f, unlock, err := s.dir.lock(s.fullName())
	if err != nil {
		return nil, err
	}
	size, err := sizeOf(f)
	if err == nil {
		err = s.checkComplete()
	}
	if err == nil && (s.entries == nil || size != s.size) {
		s.entries, err = goOn(f, s.fullName())
	}
	if err == nil && size == 0 {
		err = s.list(now)
	}
	if err != nil {
		unlock()
		return nil, err
	}
	s.entries.out = s.wrap(f)
	return func() {
		s.size, _ = sizeOf(f) // 0 has it read the file's end again
		unlock()
	}, nil
}

// checkComplete returns errComplete if files.jsonl, which is read when it has grown, notes the end of
// the file.
func (s *segment) checkComplete() error {
	info, err := os.Lstat(s.path(IndexName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil || s.entries != nil && info.Size() == s.listed {
		return err
	}
	ended, err := s.dir.ended(s.day)
	if err == nil && ended[s.name] {
		return errComplete
	}
	s.listed = info.Size()
	return err
}

// lock opens a file that processes share, and waits until it has the lock. It makes the file, whose
// name is with the folder of its day.
func (dir folder) lock(name string) (f *os.File, release func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	path := filepath.Join(string(dir), name)
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return nil, nil, err
	}
	f, err = OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := state.Lock(ctx, path, state.Exclusive)
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, func() { f.Close(); unlock() }, nil
}

// goOn returns a chainFile that goes on where a file ends. The caller has its lock. It does not know
// the first line, nor how many there are. The error is a VersionError if a newer toolcell wrote last.
func goOn(f *os.File, name string) (*chainFile, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	for unread := int64(16 << 10); unread <= maxUnread; unread *= 16 {
		end := make([]byte, min(info.Size(), unread))
		start := info.Size() - int64(len(end))
		if _, err := f.ReadAt(end, start); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if start > 0 {
			_, end, _ = bytes.Cut(end, []byte{'\n'})
		}
		c := newChainFile(f, name)
		if found, err := c.readEnd(end); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		} else if found || start == 0 {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%s: its last %s have no entry", name, text.Size(maxUnread))
}

// readEnd takes in the last lines of a file. It returns false if none is an entry, and a VersionError
// if the last one is of a newer toolcell.
func (f *chainFile) readEnd(end []byte) (found bool, err error) {
	newer := (*VersionError)(nil)
	last := bytes.LastIndexByte(end, '\n') + 1
	if rest := end[last:]; len(rest) > 0 {
		h, err := ReadHeader(rest)
		if err == nil {
			f.rest, f.wholeRest, f.prev, f.seq = rest, true, HashOf(rest), h.Seq
			return true, nil
		} else if errors.As(err, &newer) {
			return false, err
		}
		f.rest = rest
	}
	for end, isLast := end[:last], true; len(end) > 0; isLast = false {
		end = end[:len(end)-1]
		start := bytes.LastIndexByte(end, '\n') + 1
		line := end[start:]
		end = end[:start]
		if isLast {
			f.prev = HashOf(line)
		}
		h, err := ReadHeader(line)
		if err == nil {
			f.seq = h.Seq
			return true, nil
		} else if errors.As(err, &newer) {
			return false, err
		}
		if isLast {
			f.owed = len(line)
		}
	}
	return false, nil
}
