package console

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"

	"github.com/toolcell/toolcell/internal/contain"
)

// MaxTyped bounds a line or value that is read, in bytes.
const MaxTyped = 1 << 20

// ReadLine reads a line that a person types. It returns early when ctx ends,
// and leaves the reading behind: the program is about to end.
func ReadLine(ctx context.Context, in *os.File) (string, error) {
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		var l line
		defer func() { typed <- l }()
		defer contain.Error("reading a line", &l.err)
		l.text, l.err = bufio.NewReader(io.LimitReader(in, MaxTyped)).ReadString('\n')
		l.text = strings.TrimRight(l.text, "\r\n")
	}()
	select {
	case l := <-typed:
		return l.text, l.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
