package repl

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
)

// A cursor knows the line that was written last and not ended: a prompt begins
// one of its own, and a line of input goes on with it.
type cursor struct {
	mu   sync.Mutex
	rest []byte // its end, if it is long
}

// maxRest bounds what is kept of a line, in bytes.
const maxRest = 1 << 10

// follow returns a writer that passes on what is written to w.
func (c *cursor) follow(w io.Writer) io.Writer { return followed{w, c} }

type followed struct {
	io.Writer
	cursor *cursor
}

func (f followed) Write(b []byte) (int, error) {
	f.cursor.advance(b)
	return f.Writer.Write(b)
}

func (c *cursor) advance(b []byte) {
	if len(b) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := bytes.LastIndexByte(b, '\n'); at >= 0 {
		c.rest, b = nil, b[at+1:]
	}
	c.rest = append(c.rest, b...)
	c.rest = bytes.Clone(c.rest[max(0, len(c.rest)-maxRest):])
}

// newLine ends the line, if one was begun.
func (c *cursor) newLine(out *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.rest) > 0 {
		fmt.Fprintln(out)
	}
	c.rest = nil
}

// takeRest returns the line that was not ended; something else ends it.
func (c *cursor) takeRest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := string(c.rest)
	c.rest = nil
	return rest
}
