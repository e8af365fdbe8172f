package bridge

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/oci"
)

// errTimeout is why a run's context ends when its time is up.
var errTimeout = errors.New("the run's time is up")

// A Request is one call of run_python.
type Request struct {
	Code    string
	Servers []string      // names or aliases of servers that may be called; "*" is all
	Timeout time.Duration // 0 is the default
	Session string        // name of what keeps the sandbox for later runs; "" is none
	Argv    []string      // the code's sys.argv, in a session of its first run; one empty name if nil

	// Progress is told about work before the code can run, and then, with a
	// total of 0, what servers say of the calls they work on. It may be nil.
	Progress func(done, total int64, text string)
	Lines    bool // Progress is told, too, what the code prints
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

	// Its turn in the session, and a free place among the runs that go on at once.
	sess, err := s.sessions.enter(ctx, req.Session, plan.timeout)
	if err != nil {
		return r.fail(waitingStatus(err), err)
	}
	defer s.sessions.leave(sess)
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return r.fail(StatusCancelled, errors.New("the call was cancelled while it waited for others to end"))
	}

	// The sandbox: the session's, or a new one.
	b := s.sessions.resume(sess)
	if b == nil {
		// A first pull of the image may take long; that is not the code's time.
		image, err := s.o.Rootfs(ctx, req.Progress)
		if ctx.Err() != nil {
			return r.fail(StatusCancelled, errors.New("the call was cancelled while the image was made ready"))
		}
		if err != nil {
			return r.fail(StatusSandbox, err)
		}
		if b, err = s.open(image, sess); err != nil {
			return r.fail(StatusSandbox, err)
		}
	}
	s.sessions.tellBefore(sess, r)

	// The talk: code in, calls answered, until the runner is done or gone.
	files := s.artifacts.NewRun()
	defer files.Discard()
	talk := newTalk(s, plan, req, b)
	talk.display = files.Display
	defer talk.progress.end()
	b.wires.KeepWhole(spillTo(files), req.Stdout != nil, req.Stderr != nil)
	b.wires.Tee(talk.follow(req.Stdout, req.Lines), req.Stderr)
	ctx, cancel := talk.limit(ctx, plan.timeout, b.urge)
	defer cancel()
	out := b.hold(ctx, talk, req.Code)

	// What holds for every run here. Part of it shows at the first start only.
	r.standing = b.image.Notes
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
	s.addArtifacts(r, b, files)
	s.conclude(ctx, r, plan, out)
	s.sessions.tellAfter(sess, r, out)
	return r
}

// spillTo gives streams that are too long for the result a file.
func spillTo(files *artifacts.Run) func(string) (*os.File, error) {
	return func(string) (*os.File, error) {
		file, err := files.Create()
		if errors.Is(err, artifacts.ErrNoFolder) {
			err = output.ErrNotKept
		}
		return file, err
	}
}

// addArtifacts puts what a run has left into its result. The run has ended:
// nothing more of it is taken in, and no call is being answered.
func (s *Server) addArtifacts(r *Result, b *box, files *artifacts.Run) {
	if b.workspace != nil {
		files.Collect(b.workspace)
	} else if err := b.workspaceErr; err != nil && !errors.Is(err, fs.ErrNotExist) { // it ended before it had one
		s.o.Log.Warn("files in /workspace/out cannot be kept here", "err", err)
	}
	b.wires.Finish(func(k output.Spilled, named func(uri string)) { files.AddStream(k.Path, k.Name, k.Size, named) })
	left := files.Finish()
	r.folder, r.Files, r.Pictures = left.Folder, left.Files, left.Pictures
	r.Notes = append(r.Notes, left.Notes...)
	if left.Folder != "" {
		s.cleanFiles()
	}
}

// cleanFiles removes files of old runs in the background.
func (s *Server) cleanFiles() {
	s.runs.Go(func() { s.artifacts.Clean(time.Now()) })
}

// process says what to start: the runner, in the image, as its only program.
func (s *Server) process(image Image, w *output.Pipes) oci.Process {
	env := append([]string{"PATH=/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin", "LANG=C.UTF-8"}, image.Env...)
	// There is no screen: matplotlib draws into memory, whatever the image says.
	env = append(env, "MPLBACKEND=Agg")
	python := []string{image.Python, "-s", "-B", "-u", "-X", "utf8"}
	binds := []oci.Bind{{Source: s.o.RunnerDir, Target: runner.Dir}}
	if image.Runner != "" {
		binds = append(binds, oci.Bind{Source: image.Runner, Target: runner.BytecodeDir})
	}
	return oci.Process{
		Root:    image.Root,
		Binds:   binds,
		Args:    append(slices.Clone(python), runner.Program),
		Env:     lastWins(append(env, "HOME=/workspace", "TMPDIR=/tmp")),
		Limits:  s.o.Limits,
		Stdout:  w.ChildOut,
		Stderr:  w.ChildErr,
		Control: func(c net.Conn) { c.Close() },
		Python:  &oci.Python{Interpreter: python, Program: runner.Program, Base: usual, Preload: s.o.Preload},
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
	s.runs.Go(func() {
		if image, ok := s.o.Cached(s.life); ok {
			s.o.Warm(s.process(image, &output.Pipes{}))
		}
	})
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
