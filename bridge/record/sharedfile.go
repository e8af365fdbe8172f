package record

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// lockWithin is how long an entry waits for the lock of a file that processes share.
const lockWithin = 5 * time.Second

// maxUnread is how far back the last whole entry of a file may be.
const maxUnread = 4 << 20

// lock opens a file that processes share, and waits until it has the lock. It makes the file, whose
// name is with the folder of its day.
func (dir folder) lock(name string) (f *os.File, release func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockWithin)
	defer cancel()
	path := filepath.Join(string(dir), name)
	unlock, err := state.Lock(ctx, path, state.Exclusive)
	if err != nil {
		return nil, nil, err
	}
	f, err = os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return f, func() { f.Close(); unlock() }, nil
}

// goOn returns a chainFile that goes on where a file ends. The caller has its lock. It does not know
// the first line, nor how many there are.
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
		if c.readEnd(end) || start == 0 {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%s: its last %s have no entry", name, text.Size(maxUnread))
}

// readEnd takes in the last lines of a file. It returns false if none is an entry.
func (f *chainFile) readEnd(end []byte) bool {
	last := bytes.LastIndexByte(end, '\n') + 1
	if rest := end[last:]; len(rest) > 0 {
		if h, err := ReadHeader(rest); err == nil {
			f.rest, f.wholeRest, f.prev, f.seq = rest, true, HashOf(rest), h.Seq
			return true
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
		if h, err := ReadHeader(line); err == nil {
			f.seq = h.Seq
			return true
		}
		if isLast {
			f.owed = len(line)
		}
	}
	return false
}
