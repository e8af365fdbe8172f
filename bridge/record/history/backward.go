package history

import (
	"bytes"
	"io"
	"os"

	"github.com/toolcell/toolcell/bridge/record"
)

// chunk is how much of a file is read at once.
const chunk = 128 << 10

// backward reads a file line by line, the last one first. Of its memory no line takes more than
// record.MaxLine.
type backward struct {
	file *os.File
	at   int64  // where text begins in the file
	text []byte // that was read and not returned
	room []byte // text is at its end
	long bool   // the end of a line that is too long was dropped
	all  bool   // the whole file was returned

	skipped int // lines that are too long
}

func openBackward(path string) (*backward, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &backward{file: f, at: size}, nil
}

func (b *backward) close() { b.file.Close() }

// next returns the line before, or io.EOF. A line without a line feed, which the last one may be, is
// returned as well. The line is good until the next call.
func (b *backward) next() ([]byte, error) {
	for !b.all {
		from := bytes.LastIndexByte(b.text, '\n') + 1
		if from == 0 && b.at > 0 {
			if err := b.read(); err != nil {
				return nil, err
			}
			continue
		}
		line, long := b.text[from:], b.long
		b.text, b.long = b.text[:max(0, from-1)], false
		b.all = from == 0
		switch {
		case long || len(line) > record.MaxLine:
			b.skipped++
		case len(line) > 0:
			return line, nil
		}
	}
	return nil, io.EOF
}

// read reads the chunk before text, which has no line feed.
func (b *backward) read() error {
	if len(b.text) > record.MaxLine {
		b.text, b.long = b.text[:0], true
	}
	n := int(min(b.at, chunk))
	if need := n + len(b.text); need > len(b.room) {
		room := make([]byte, max(need, chunk))
		copy(room[len(room)-len(b.text):], b.text)
		b.room = room
	} else {
		copy(b.room[len(b.room)-len(b.text):], b.text)
	}
	from := len(b.room) - len(b.text) - n
	if _, err := b.file.ReadAt(b.room[from:from+n], b.at-int64(n)); err != nil {
		return err
	}
	b.at -= int64(n)
	b.text = b.room[from:]
	return nil
}
