package console

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
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
		text, err := bufio.NewReader(io.LimitReader(in, MaxTyped)).ReadString('\n')
		typed <- line{strings.TrimRight(text, "\r\n"), err}
	}()
	select {
	case l := <-typed:
		return l.text, l.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
