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
		end := bytes.IndexByte(buffered, '\n')
		if end < 0 {
			end = len(buffered)
		}
		if cr := bytes.IndexByte(buffered[:end], '\r'); cr >= 0 {
			end, l.afterCR = cr, true
		}
		ended = end < len(buffered)
		taken := end
		if ended {
			taken++
		}
		_, _ = l.In.Discard(taken)
		return buffered[:end:end], ended, nil
	}
}
