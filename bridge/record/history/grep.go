package history

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/toolcell/toolcell/bridge/record"
)

// grep calls each for the lines of a file that have a text in them, the first one first, until it
// returns false. A line is good until each returns; those that are too long are passed over. Where
// there is no file there are no lines.
func grep(path string, text []byte, each func(line []byte) bool) error {
	f, err := openFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	buffer := make([]byte, record.MaxLine+chunk)
	kept := 0 // bytes at the front of the buffer whose line goes on
	for {
		n, err := io.ReadFull(f, buffer[kept:])
		block := buffer[:kept+n]
		end := err != nil // io.EOF, or io.ErrUnexpectedEOF
		if end && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		whole := block
		if !end {
			whole = block[:bytes.LastIndexByte(block, '\n')+1]
		}
		if !grepBlock(whole, text, each) || end {
			return nil
		}
		if kept = copy(buffer, block[len(whole):]); kept > record.MaxLine {
			kept = 0 // what is left of the line is no entry, and passed over as such
		}
	}
}

// grepBlock is grep for whole lines.
func grepBlock(block, text []byte, each func([]byte) bool) bool {
	for len(block) > 0 {
		at := bytes.Index(block, text)
		if at < 0 {
			break
		}
		from := bytes.LastIndexByte(block[:at], '\n') + 1
		to := bytes.IndexByte(block[at:], '\n')
		if to < 0 {
			to = len(block) - at
		}
		if !each(block[from : at+to]) {
			return false
		}
		block = block[min(at+to+1, len(block)):]
	}
	return true
}
