package images

import (
	"bufio"
	"io"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
)

// A readAhead reads from another reader in its own goroutine, a block ahead.
type readAhead struct {
	io.Reader
	pipe    *io.PipeReader
	wake    io.Closer     // interrupts a Read of the other reader
	stopped chan struct{} // closed when the goroutine has ended
	once    sync.Once
}

const blockSize = 256 << 10

func newReadAhead(inner io.Reader, wake io.Closer) *readAhead {
	out, in := io.Pipe()
	a := &readAhead{Reader: bufio.NewReaderSize(out, blockSize), pipe: out, wake: wake, stopped: make(chan struct{})}
	go func() {
		defer close(a.stopped)
		defer contain.Recover("reading a layer", func(err error) { in.CloseWithError(err) }) // in place of the block that panicked
		_, err := io.CopyBuffer(in, inner, make([]byte, blockSize))
		in.CloseWithError(err)
	}()
	return a
}

// Close ends the goroutine. After that, nothing reads from the inner reader.
func (a *readAhead) Close() (err error) {
	a.once.Do(func() {
		defer contain.Error("closing a layer", &err)
		a.pipe.Close()
		err = a.wake.Close()
		<-a.stopped
	})
	return err
}
