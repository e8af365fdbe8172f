package bridge

import (
	"fmt"
	"io"
	"os"
)

// stdinChunk is how much of a standard input is read at once, in bytes. It and
// what a pipe holds (64 KiB, pipe(7)) is all that is read ahead of the code.
const stdinChunk = 4 << 10

// feedStdin returns the end of a pipe that a sandbox reads what comes from r. The
// sandbox never gets the descriptor behind r, which may be a terminal. Once ended
// is closed nothing more is written; a read of r that blocks is left behind.
func feedStdin(r io.Reader, ended <-chan struct{}) (*os.File, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making an input pipe: %w", err)
	}
	go func() {
		// An error of either end means that nothing more comes or is wanted.
		_, _ = io.CopyBuffer(struct{ io.Writer }{ours}, struct{ io.Reader }{r}, make([]byte, stdinChunk))
		ours.Close()
	}()
	go func() {
		<-ended
		ours.Close() // wakes a write into a full pipe
	}()
	return theirs, nil
}
