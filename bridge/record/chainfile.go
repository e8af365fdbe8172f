package record

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"time"
)

// A chainFile appends entries to one file. It has one user at a time: the journal that made the
// file, or who has its lock.
type chainFile struct {
	out   io.Writer // a file that is open for appending
	name  string    // with the folder of its day
	prev  Hash      // of the last line
	first Hash      // of the first line
	seq   uint64    // of the last entry
	lines int

	// rest is what stands behind the last line feed: of a process that was killed or found the disk
	// full. If wholeRest is true it is the last line, which lacks but its line feed.
	rest      []byte
	wholeRest bool
	// owed counts the bytes of the last line if that is torn, and no entry behind it says so.
	owed int

	buffer []byte // to be used again
}

// newChainFile begins a file.
func newChainFile(out io.Writer, name string) *chainFile {
	return &chainFile{out: out, name: name, prev: FirstPrev(name)}
}

// append writes an entry, with one write(2). After an error it does not count, and what there is of
// it is rest.
func (f *chainFile) append(h Header, body []byte) error {
	b, prev := f.buffer[:0], f.prev
	if f.rest != nil {
		b = append(b, '\n')
		if !f.wholeRest {
			prev = HashOf(f.rest)
		}
	}
	from := len(b)
	h.Seq = f.seq + 1
	b = appendLine(b, &h, prev, body)
	f.buffer = b
	if len(b)-from > MaxLine {
		return fmt.Errorf("an entry of %d bytes", len(b)-from)
	}
	n, err := f.out.Write(b)
	if n > 0 && f.rest != nil {
		f.endRest()
	}
	whole := len(b) - 1 // without the line feed
	if n < whole {
		if n > from {
			f.rest = bytes.Clone(b[from:n])
		}
		return cmp.Or(err, io.ErrShortWrite)
	}
	f.seq++
	f.advance(HashOf(b[from:whole]))
	if n == whole {
		f.rest, f.wholeRest = bytes.Clone(b[from:n]), true
	}
	return nil
}

// endRest takes in that a line feed was written behind the rest.
func (f *chainFile) endRest() {
	if !f.wholeRest {
		f.owed = len(f.rest)
		f.advance(HashOf(f.rest))
	}
	f.rest, f.wholeRest = nil, false
}

func (f *chainFile) advance(line Hash) {
	f.prev = line
	if f.lines++; f.lines == 1 {
		f.first = line
	}
}

// torn returns how many bytes of a line there are that no entry speaks of.
func (f *chainFile) torn() int {
	if f.wholeRest {
		return 0
	}
	return max(f.owed, len(f.rest))
}

// mend writes that the last line is torn, or entries are lost.
func (f *chainFile) mend(t Torn, now time.Time) error {
	t.Bytes = f.torn()
	body, err := encode(t, &draft{})
	if err != nil {
		return err
	}
	if err := f.append(Header{Time: now, Kind: KindTorn}, body); err != nil {
		return err
	}
	f.owed = 0
	return nil
}
