package wire

import (
	"bufio"
	"bytes"
)

// Lines reads lines that end with a line feed, a carriage return or both: JSON has
// neither within strings, and streams of events may use any of them.
type Lines struct {
	In      *bufio.Reader
	afterCR bool
}

// Piece returns the next part of a line, without its end. It is valid until the next
// call. ended reports that the line ends with it; an error comes without a piece.
func (l *Lines) Piece() (piece []byte, ended bool, err error) {
	for {
		if _, err := l.In.Peek(1); err != nil {
			return nil, false, err
		}
		buffered, _ := l.In.Peek(l.In.Buffered()) // all of it is there
		if l.afterCR && buffered[0] == '\n' {
			l.afterCR = false
			_, _ = l.In.Discard(1)
			continue
		}
		l.afterCR = false
		end := lineEnd(buffered)
		ended = end < len(buffered)
		taken := end
		if ended {
			l.afterCR = buffered[end] == '\r'
			taken++
		}
		_, _ = l.In.Discard(taken)
		return buffered[:end:end], ended, nil
	}
}

// lineEnd returns where the first line feed or carriage return is, or the length of text.
// It looks at little more than that: a search of all for each of them would pass over the
// rest of the buffer again for every short line.
func lineEnd(text []byte) int {
	for from, size := 0, 256; from < len(text); from, size = from+size, 2*size {
		part := text[from:min(len(text), from+size)]
		lf := bytes.IndexByte(part, '\n')
		if lf >= 0 {
			part = part[:lf]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			return from + cr
		}
		if lf >= 0 {
			return from + lf
		}
	}
	return len(text)
}
