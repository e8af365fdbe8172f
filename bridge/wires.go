package bridge

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// wires are the two output pipes between us and one sandbox, with both of
// their ends.
type wires struct {
	limit              int
	childOut, childErr *os.File
	stdout, stderr     *capture
	readers            []*os.File // of stdout, of stderr
	copying            sync.WaitGroup
}

// pipeBuffers are what pipes are read into: made anew, those of one run would be
// a quarter of a megabyte of garbage.
var pipeBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

func openWires(limit int) (w *wires, err error) {
	w = &wires{limit: limit}
	for _, child := range []**os.File{&w.childOut, &w.childErr} {
		r, end, err := pipe()
		if err != nil {
			w.close()
			return nil, fmt.Errorf("making an output pipe: %w", err)
		}
		*child, w.readers = end, append(w.readers, r)
	}
	w.listen()
	return w, nil
}

// pipe makes a pipe of which we read without blocking, and a program writes as
// programs expect. os.Pipe has both ends be ours.
func pipe() (r, w *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	_ = unix.SetNonblock(ends[0], true) // it does not fail
	return os.NewFile(uintptr(ends[0]), "read end"), os.NewFile(uintptr(ends[1]), "write end"), nil
}

// listen begins to take in what comes, for the next run.
func (w *wires) listen() {
	w.stdout, w.stderr = newCapture(w.limit), newCapture(w.limit)
	for i, to := range []*capture{w.stdout, w.stderr} {
		r := w.readers[i]
		_ = r.SetReadDeadline(time.Time{})
		w.copying.Go(func() {
			b := pipeBuffers.Get().(*[64 << 10]byte)
			defer pipeBuffers.Put(b)
			_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{r}, b[:])
		})
	}
}

// tee passes on what has come already, and from now on what comes. The writers
// may be nil.
func (w *wires) tee(stdout, stderr io.Writer) {
	w.stdout.passOn(stdout)
	w.stderr.passOn(stderr)
}

// keepWhole writes streams that are too long for the result of a run to files
// as well, which create makes. A stream that somebody sees in full anyway is not
// kept.
func (w *wires) keepWhole(create func(name string) (*os.File, error), stdoutSeen, stderrSeen bool) {
	if !stdoutSeen {
		w.stdout.keepWhole(&overflow{create: create, name: "stdout.txt"})
	}
	if !stderrSeen {
		w.stderr.keepWhole(&overflow{create: create, name: "stderr.txt"})
	}
}

// finish ends the files that keepWhole has begun and passes each of them to keep,
// which calls named once the file has a URI. The streams have ended.
func (w *wires) finish(keep func(k spilled, named func(uri string))) {
	w.stdout.whole.finish(keep)
	w.stderr.whole.finish(keep)
}

// settle takes in what a run has written by now, and stops there: what comes
// later from a session, out of a thread or process that the run left, is for
// the next run. That begins with listen.
func (w *wires) settle() {
	for _, r := range w.readers {
		_ = r.SetReadDeadline(time.Now())
	}
	w.copying.Wait()
	for _, r := range w.readers {
		w.takeIn(r, true)
	}
}

// drain takes in what the ended processes left in the pipes. No process that
// could write is left, so their end is near; the bound is for a sandbox that
// breaks this promise. Of one that has said that nothing comes any more, all is
// there already, though the kernel may not be through with it.
func (w *wires) drain(all bool) {
	patience := 2 * time.Second
	if all {
		patience = 0
	}
	for _, r := range w.readers {
		_ = r.SetReadDeadline(time.Now().Add(patience))
	}
	w.copying.Wait()
	if all {
		for _, r := range w.readers {
			w.takeIn(r, false)
		}
	}
}

// takeIn reads what is in a pipe now. With once it takes no more than there was
// at first (FIONREAD), for somebody may write without end.
func (w *wires) takeIn(r *os.File, once bool) {
	to := w.stdout
	if r == w.readers[1] {
		to = w.stderr
	}
	raw, err := r.SyscallConn()
	if err != nil || r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	b, rest := pipeBuffers.Get().(*[64 << 10]byte), 1<<62
	defer pipeBuffers.Put(b)
	if once {
		_ = raw.Control(func(fd uintptr) { rest, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	}
	for more := true; more && rest > 0; {
		_ = raw.Read(func(fd uintptr) bool {
			n, err := unix.Read(int(fd), b[:min(len(b), rest)])
			if more = err == nil && n > 0 || errors.Is(err, unix.EINTR); n > 0 {
				_, _ = to.Write(b[:n])
				rest -= n
			}
			return true
		})
	}
}

func (w *wires) close() {
	for _, f := range append([]*os.File{w.childOut, w.childErr}, w.readers...) {
		if f != nil {
			f.Close()
		}
	}
	w.copying.Wait()
}
