package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/runcell/runcell/oci"
	"golang.org/x/sys/unix"
)

// errTimeout is why a run's context ends when its time is up.
var errTimeout = errors.New("the run's time is up")

// A Request is one call of run_python.
type Request struct {
	Code    string
	Servers []string      // names or aliases of servers that may be called; "*" is all
	Timeout time.Duration // 0 is the default
	Argv    []string      // the code's sys.argv; one empty name if nil

	// Progress is told about work before the code can run, and then, with a
	// total of 0, what servers say of the calls they work on. It may be nil.
	Progress func(done, total int64, text string)
	// Stdout and Stderr get what the code writes, at once and whole, besides
	// the result. They may be nil.
	Stdout, Stderr io.Writer
}

// Run executes one request and says how it went. It never fails: every way to
// end is a status.
func (s *Server) Run(ctx context.Context, req Request) *Result {
	s.runs.Add(1)
	defer s.runs.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	start := time.Now()
	r := s.run(ctx, req)
	r.summarize()
	s.o.Log.Info("run", "status", r.Status, "servers", len(r.Servers), "ms", time.Since(start).Milliseconds())
	return r
}

// run is the story of one call, top to bottom.
func (s *Server) run(ctx context.Context, req Request) *Result {
	r := &Result{}
	plan, err := s.check(req, r)
	if err != nil {
		return r.fail(StatusValidation, err)
	}

	// A free place, among the runs that go on at once.
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return r.fail(StatusCancelled, errors.New("the call was cancelled while it waited for others to end"))
	}

	// The image. A first pull may take long; that is not the code's time.
	image, err := s.o.Rootfs(ctx, req.Progress)
	if ctx.Err() != nil {
		return r.fail(StatusCancelled, errors.New("the call was cancelled while the image was made ready"))
	}
	if err != nil {
		return r.fail(StatusSandbox, err)
	}

	// The sandbox, and the ends of its streams that are ours.
	ctx, cancel := context.WithTimeoutCause(ctx, plan.timeout, errTimeout)
	defer cancel()
	w, err := openWires(s.o.MaxOutput, req.Stdout, req.Stderr)
	if err != nil {
		return r.fail(StatusSandbox, err)
	}
	defer w.close()
	ended, control := make(chan struct{}), make(chan net.Conn, 1)
	talk := newTalk(s, plan, req.Progress)
	p := s.process(image, w)
	p.Control, p.Ended = func(c net.Conn) { control <- c }, talk.ended
	var exit oci.Exit
	var runErr error
	go func() {
		defer close(ended)
		defer close(control)
		exit, runErr = s.o.Sandbox.Run(ctx, p)
	}()

	// The talk: code in, calls answered, until the runner is done or gone.
	talked := make(chan struct{})
	go func() {
		defer close(talked)
		if conn := <-control; conn != nil {
			talk.serve(ctx, conn, req.Code)
		}
	}()
	go func() {
		// A runner that broke the talk is of no further use.
		<-talked
		if talk.broken() {
			cancel()
		}
	}()
	<-ended
	w.drain(talk.saidEnd())
	<-talked

	// What holds for every run here. Part of it shows at the first start only.
	r.standing = image.Notes
	if s.o.Missing != nil {
		r.standing = append(slices.Clone(r.standing), s.o.Missing()...)
	}
	r.Notes = append(r.Notes, r.standing...)
	if note := talk.unsearched(); note != "" {
		r.Notes = append(r.Notes, note)
	}
	r.Notes = append(r.Notes, talk.savedNotes()...)
	if s.o.Isolation != nil {
		r.Isolation = s.o.Isolation()
	}
	return s.conclude(ctx, r, plan, outcome{exit: exit, err: runErr, talk: talk, wires: w})
}

// process says what to start: the runner, in the image, as its only program.
func (s *Server) process(image Image, w *wires) oci.Process {
	env := append([]string{"PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin", "LANG=C.UTF-8"}, image.Env...)
	python := []string{image.Python, "-s", "-B", "-u", "-X", "utf8"}
	return oci.Process{
		Root:    image.Root,
		Binds:   []oci.Bind{{Source: s.o.RunnerFile, Target: runnerPath}},
		Args:    append(slices.Clone(python), runnerPath),
		Env:     lastWins(append(env, "HOME=/workspace", "TMPDIR=/tmp")),
		Limits:  s.o.Limits,
		Stdout:  w.childOut,
		Stderr:  w.childErr,
		Control: func(c net.Conn) { c.Close() },
		Python:  &oci.Python{Interpreter: python, Program: runnerPath, Base: usual, Preload: s.o.Preload},
	}
}

// usual are modules that many runs import, or the runner for them: awaiting
// and tracebacks.
var usual = []string{
	"asyncio", "linecache", "traceback", "textwrap", "re", "random", "datetime", "math", "collections", "itertools",
	"functools", "statistics", "dataclasses", "typing", "pathlib", "subprocess", "threading", "time",
}

// warm begins to make ready for the first run, beside what the client does.
func (s *Server) warm() {
	if s.o.Cached == nil || s.o.Warm == nil {
		return
	}
	s.runs.Add(1)
	go func() {
		defer s.runs.Done()
		if image, ok := s.o.Cached(s.life); ok {
			s.o.Warm(s.process(image, &wires{}))
		}
	}()
}

// lastWins drops all but the last setting of each variable.
func lastWins(env []string) []string {
	at := map[string]int{}
	var out []string
	for _, kv := range env {
		name, _, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.ContainsRune(kv, 0) {
			continue // an image may say anything
		}
		if i, dup := at[name]; dup {
			out[i] = kv
			continue
		}
		at[name] = len(out)
		out = append(out, kv)
	}
	return out
}

// wires are the two output pipes between us and one sandbox, with both of
// their ends.
type wires struct {
	childOut, childErr *os.File
	stdout, stderr     *capture
	readers            []*os.File
	copying            sync.WaitGroup
}

func openWires(limit int, teeOut, teeErr io.Writer) (w *wires, err error) {
	w = &wires{stdout: newCapture(limit, teeOut), stderr: newCapture(limit, teeErr)}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.childOut, err = w.pipe(w.stdout); err != nil {
		return w, err
	}
	w.childErr, err = w.pipe(w.stderr)
	return w, err
}

// pipe makes a pipe whose reading end is copied into c.
func (w *wires) pipe(c *capture) (*os.File, error) {
	r, child, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making an output pipe: %w", err)
	}
	w.readers = append(w.readers, r)
	w.copying.Add(1)
	go func() {
		defer w.copying.Done()
		_, _ = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{r}, make([]byte, 64<<10))
	}()
	return child, nil
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
			w.takeIn(r)
		}
	}
}

// takeIn reads what is in a pipe now.
func (w *wires) takeIn(r *os.File) {
	to := w.stdout
	if r == w.readers[1] {
		to = w.stderr
	}
	raw, err := r.SyscallConn()
	if err != nil || r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	b := make([]byte, 64<<10)
	for more := true; more; {
		_ = raw.Read(func(fd uintptr) bool {
			n, err := unix.Read(int(fd), b)
			if more = err == nil && n > 0 || errors.Is(err, unix.EINTR); n > 0 {
				_, _ = to.Write(b[:n])
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

// fail makes r the result of a call that could not do its work.
func (r *Result) fail(status string, err error) *Result {
	r.Status, r.Error, r.cause = status, err.Error(), err
	var h *oci.HintError
	if errors.As(err, &h) {
		r.Hint = h.Hint
	}
	return r
}

// seconds writes a duration as a person would.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
}
