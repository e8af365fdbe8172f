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
	long []byte // a line that does not fit into the reader's buffer
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

// buffered is how much of a file is read at once: many are open at the same time.
const buffered = 64 << 10

// NewLines returns the lines of a file that is read from its beginning.
func NewLines(in io.Reader) *Lines {
	return &Lines{in: bufio.NewReaderSize(in, buffered), next: Line{Number: 1}}
}

// Next returns the next line, or io.EOF.
func (l *Lines) Next() (Line, error) {
	line := l.next
	text, err := l.in.ReadSlice('\n')
	size := int64(len(text))
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = append(l.long[:0], text...)
		for errors.Is(err, bufio.ErrBufferFull) {
			text, err = l.in.ReadSlice('\n')
			size += int64(len(text))
			l.long = append(l.long, text[:min(len(text), MaxLine+len("x\n")-len(l.long))]...)
		}
		text = l.long
	}
	switch {
	case errors.Is(err, io.EOF) && size == 0:
		return Line{}, io.EOF
	case errors.Is(err, io.EOF):
		line.Rest = true
	case err != nil:
		return Line{}, err
	}
	text = bytes.TrimSuffix(text, []byte{'\n'})
	line.Long = len(text) > MaxLine
	line.Text = text[:min(len(text), MaxLine)]
	l.next = Line{Number: line.Number + 1, At: line.At + size}
	return line, nil
}
