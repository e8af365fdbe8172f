package images

import (
	"io"
	"io/fs"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
)

// A readAhead reads from another reader in its own goroutine, some blocks ahead.
type readAhead struct {
	inner   io.Reader
	wake    io.Closer // interrupts a Read of inner
	full    chan block
	free    chan []byte
	quit    chan struct{}
	stopped chan struct{} // closed when the goroutine has ended
	once    sync.Once

	unread []byte // the rest of buf that was not read yet
	buf    []byte
	err    error
}

type block struct {
	buf []byte
	n   int
	err error
}

const (
	aheadBlocks = 4
	blockSize   = 256 << 10
)

func newReadAhead(inner io.Reader, wake io.Closer) *readAhead {
	a := &readAhead{
		inner: inner, wake: wake, full: make(chan block, aheadBlocks), free: make(chan []byte, aheadBlocks),
		quit: make(chan struct{}), stopped: make(chan struct{}),
	}
	for range aheadBlocks {
		a.free <- nil
	}
	go a.fill()
	return a
}

func (a *readAhead) fill() {
	defer close(a.stopped)
	defer contain.Recover("reading a layer", func(err error) { a.full <- block{err: err} }) // in place of the block that panicked
	for {
		var buf []byte
		select {
		case buf = <-a.free:
		case <-a.quit:
			return
		}
		if buf == nil {
			buf = make([]byte, blockSize)
		}
		n, err := fillBlock(a.inner, buf)
		a.full <- block{buf, n, err} // never blocks: there are as many slots as blocks
		if err != nil {
			return
		}
	}
}

// fillBlock is io.ReadFull, but returns the reader's own error.
func fillBlock(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var more int
		more, err = r.Read(buf[n:])
		n += more
	}
	return n, err
}

func (a *readAhead) Read(p []byte) (int, error) {
	for len(a.unread) == 0 {
		if a.err != nil {
			return 0, a.err
		}
		if a.buf != nil {
			a.free <- a.buf
			a.buf = nil
		}
		var b block
		select {
		case b = <-a.full:
		case <-a.quit:
			return 0, fs.ErrClosed
		}
		a.buf, a.unread, a.err = b.buf, b.buf[:b.n], b.err
	}
	n := copy(p, a.unread)
	a.unread = a.unread[n:]
	return n, nil
}

// Close ends the goroutine. After that, nothing reads from the inner reader.
func (a *readAhead) Close() (err error) {
	a.once.Do(func() {
		defer contain.Error("closing a layer", &err)
		close(a.quit)
		err = a.wake.Close()
		<-a.stopped
	})
	return err
}
