package record

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Lines reads a file line by line, the first one first.
type Lines struct {
	in   *bufio.Reader
	next Line
}

// A Line is one of a file.
type Line struct {
	Text   []byte // without the line feed; until the next line is read
	Number int    // from 1
	At     int64  // where it begins
	Long   bool   // it is longer than MaxLine, and Text its beginning
	Rest   bool   // it has no line feed: the file ends in it
}

// NewLines returns the lines of a file that is read from its beginning.
func NewLines(in io.Reader) *Lines {
	return &Lines{in: bufio.NewReaderSize(in, MaxLine+1), next: Line{Number: 1}}
}

// Next returns the next line, or io.EOF.
func (l *Lines) Next() (Line, error) {
	line := l.next
	text, err := l.in.ReadSlice('\n')
	size := int64(len(text))
	if errors.Is(err, bufio.ErrBufferFull) {
		line.Long = true
		text = bytes.Clone(text[:MaxLine])
		var n int64
		n, err = l.skip()
		size += n
	}
	switch {
	case errors.Is(err, io.EOF) && size == 0:
		return Line{}, io.EOF
	case errors.Is(err, io.EOF):
		line.Rest = true
	case err != nil:
		return Line{}, err
	}
	line.Text = bytes.TrimSuffix(text, []byte{'\n'})
	l.next = Line{Number: line.Number + 1, At: line.At + size}
	return line, nil
}

// skip reads up to the end of a line that is too long.
func (l *Lines) skip() (n int64, err error) {
	for {
		text, err := l.in.ReadSlice('\n')
		n += int64(len(text))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return n, err
		}
	}
}
