// Package output reads what a sandbox writes to stdout and stderr: it keeps the
// head and the tail, spills the whole to a file if it is too much, and passes
// printed lines on while the code runs.
package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/contain"
)

// Pipes are the two output pipes between us and one sandbox, with both of
// their ends.
type Pipes struct {
	limit              int // bytes of a result
	taken              int // of them, by what MakeRoom was for
	outSeen, errSeen   bool
	ChildOut, ChildErr *os.File
	Stdout, Stderr     *capture
	readers            []*os.File // of stdout, of stderr
	copying            sync.WaitGroup
}

// pipeBuffers are reused buffers for reading pipes: allocated for each run, they
// would be a quarter of a megabyte of garbage.
var pipeBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// Open makes the pipes. At most limit bytes of both streams are kept for a result.
func Open(limit int) (w *Pipes, err error) {
	w = &Pipes{limit: limit}
	for _, child := range []**os.File{&w.ChildOut, &w.ChildErr} {
		r, end, err := pipe()
		if err != nil {
			w.Close()
			return nil, fmt.Errorf("making an output pipe: %w", err)
		}
		*child, w.readers = end, append(w.readers, r)
	}
	w.Listen()
	return w, nil
}

// pipe makes a pipe whose read end does not block and whose write end does, as
// programs expect. os.Pipe makes both ends non-blocking.
func pipe() (r, w *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	_ = unix.SetNonblock(ends[0], true) // cannot fail
	return os.NewFile(uintptr(ends[0]), "read end"), os.NewFile(uintptr(ends[1]), "write end"), nil
}

// Listen begins to read the output of the next run.
func (w *Pipes) Listen() {
	w.Stdout, w.Stderr, w.taken = newCapture(w.limit), newCapture(w.limit/4), 0
	w.copy()
}

// copy begins to read the pipes.
func (w *Pipes) copy() {
	for i, to := range []*capture{w.Stdout, w.Stderr} {
		r := w.readers[i]
		_ = r.SetReadDeadline(time.Time{})
		w.copying.Go(func() {
			defer contain.Recover("reading the output of code", func(error) {
				_, _ = io.Copy(io.Discard, r) // the code would wait for a reader
			})
			b := pipeBuffers.Get().(*[64 << 10]byte)
			defer pipeBuffers.Put(b)
			_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{r}, b[:])
		})
	}
}

// Tee also writes the output, including what has come already, to the writers,
// which may be nil.
func (w *Pipes) Tee(stdout, stderr io.Writer) {
	w.Stdout.passOn(stdout)
	w.Stderr.passOn(stderr)
}

// KeepWhole writes streams that are too long for the result of a run to files
// as well, which create makes, unless it is nil. A stream that is seen in full anyway is not
// kept.
func (w *Pipes) KeepWhole(create func() (*os.File, error), stdoutSeen, stderrSeen bool) {
	w.outSeen, w.errSeen = stdoutSeen, stderrSeen
	if create == nil {
		return
	}
	if !stdoutSeen {
		w.Stdout.keepWhole(&overflow{create: create, name: "stdout.txt"})
	}
	if !stderrSeen {
		w.Stderr.keepWhole(&overflow{create: create, name: "stderr.txt"})
	}
}

// MakeRoom makes room in the result for n bytes beside the streams, which have ended,
// and returns how many of them it is for: what the streams leave, but at least a
// quarter of the limit. A stream that is seen in full anyway takes none.
func (w *Pipes) MakeRoom(n int) int {
	left := int64(w.limit)
	if !w.outSeen {
		left -= w.Stdout.size()
	}
	if !w.errSeen {
		left -= min(w.Stderr.size(), int64(w.limit/4))
	}
	w.taken = min(n, int(max(left, int64(w.limit/4))))
	return w.taken
}

// Finish ends the files that KeepWhole began and passes each of them to keep,
// which calls named once the file has a URI. The streams have ended.
func (w *Pipes) Finish(keep func(k Spilled, named func(uri string))) {
	roomOut, roomErr := w.rooms()
	w.Stdout.finish(roomOut, keep)
	w.Stderr.finish(roomErr, keep)
}

// Settle reads the output that a run has written by now and stops there: later
// output of a session, from a thread or process that the run left behind,
// belongs to the next run, which begins with Listen.
func (w *Pipes) Settle() {
	for _, r := range w.readers {
		_ = r.SetReadDeadline(time.Now())
	}
	w.copying.Wait()
	for _, r := range w.readers {
		w.takeIn(r, true)
	}
}

// Flush reads the output that a run has written by now, and passes it on before it
// returns. It must not be called at the same time as any other method.
func (w *Pipes) Flush() {
	w.Settle()
	w.copy()
}

// Drain reads what the ended processes left in the pipes. No process that could
// write is left, so they end soon; the time limit is for a sandbox where that is
// not true. With all, the sandbox has reported its end: everything is in the pipes
// already, even if the process still exists.
func (w *Pipes) Drain(all bool) {
	timeout := 2 * time.Second
	if all {
		timeout = 0
	}
	for _, r := range w.readers {
		_ = r.SetReadDeadline(time.Now().Add(timeout))
	}
	w.copying.Wait()
	if all {
		for _, r := range w.readers {
			w.takeIn(r, false)
		}
	}
}

// takeIn reads the present content of a pipe. With once it takes no more than
// there was at first (FIONREAD), since a process may write without end.
func (w *Pipes) takeIn(r *os.File, once bool) {
	to := w.Stdout
	if r == w.readers[1] {
		to = w.Stderr
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

// Close closes both ends of both pipes.
func (w *Pipes) Close() {
	for _, f := range append([]*os.File{w.ChildOut, w.ChildErr}, w.readers...) {
		if f != nil {
			f.Close()
		}
	}
	w.copying.Wait()
}
