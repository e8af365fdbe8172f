package repl

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// A cursor knows whether what was written last ended its line: a prompt begins
// one of its own.
type cursor struct {
	mu     sync.Mutex
	inLine bool
}

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
	c.inLine = b[len(b)-1] != '\n'
}

// newLine ends the line, if one was begun.
func (c *cursor) newLine(out *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inLine {
		fmt.Fprintln(out)
	}
	c.inLine = false
}
