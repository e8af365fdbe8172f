package run

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/network"
	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/limits"
	"github.com/toolcell/toolcell/oci/spec"
)

// An interpreter is a Python process in a sandbox. It belongs to one run or to a
// session.
type interpreter struct {
	image    Image
	packages resolvedPackages
	limits   spec.Limits
	mounts   []spec.Mount // as the settings have them
	folder   string       // of the client, which it is to be shown; "" if none
	conn     *runner.Conn
	pipes    *output.Pipes
	kill     context.CancelCauseFunc

	// Known once started is closed.
	started    chan struct{}
	mounted    []string             // where the user's files are in it, the folder too if it is shown
	folderNote string               // about the folder
	sandbox    Sandbox              // nil if it did not start
	workspace  *artifacts.Workspace // nil if there is none

	thawIdle func(held bool) // ends the freeze between the runs of a session; nil in a run
	previous previousOutput  // by the last run of a session
	network  *network.Access // of the active run; nil if it has none
	used     limits.Usage    // by the runs of a session before
	planned  int             // results of planned calls that its variables may have

	freezes freezes

	ended chan struct{} // then these two are
	exit  oci.Exit
	err   error
}

// An ending describes how the code of a run ended.
type ending struct {
	done runner.Done
	why  error    // what ended it before its time, as runner.Conn.Run says
	exit oci.Exit // of the sandbox; in a session that continues, of the code
	err  error    // of the sandbox itself

	denied bool // the user has denied something that the code wanted
}

// acquireInterpreter finds the interpreter of the run's session, or starts a new one.
func (r *Run) acquireInterpreter(ctx context.Context) error {
	if r.python = r.runs.sessions.resume(r.session); r.python != nil && r.seesTheSame() {
		signals.Started(ctx, time.Now(), ofSession, nil)
		return r.python.packages.checkAdded(r.session.name, r.needs)
	}
	r.newFolder()
	// The first pull of an image may take long, and does not count as time of the code.
	image, err := r.o.Rootfs(ctx, r.req.Progress)
	if ctx.Err() != nil {
		return cancelled(ctx, "while the image was made ready")
	}
	if err != nil {
		return withStatus(StatusSandbox, err)
	}
	packages, err := r.preparePackages(ctx, image)
	if err != nil {
		return err
	}
	r.python, err = r.startInterpreter(image, packages)
	return withStatus(StatusSandbox, err)
}

// startInterpreter starts a sandbox, which ends with the server at the latest.
func (r *Run) startInterpreter(image Image, packages resolvedPackages) (*interpreter, error) {
	rs, sess := r.runs, r.session
	pipes, err := output.Open(r.o.MaxOutput)
	if err != nil {
		return nil, err
	}
	in := &interpreter{
		image: image, packages: packages, limits: r.o.Limits, mounts: r.o.Mounts, pipes: pipes, previous: previousOutput{}, started: make(chan struct{}), ended: make(chan struct{}),
	}
	for _, m := range in.mounts {
		in.mounted = append(in.mounted, m.Target)
	}
	p := newProcess(r.o, image, packages, pipes)
	if r.req.Stdin != nil {
		if p.Stdin, err = feedStdin(r.req.Stdin, in.ended); err != nil {
			pipes.Close()
			return nil, err
		}
	}
	in.conn = runner.NewConn(runnerSandbox{in}, r.o.RunnerDir, rs.budget)
	ctx, kill := context.WithCancelCause(rs.life)
	in.kill = kill
	sess.interpreter = in
	p.Session = sess.name != ""
	in.show(&p, r.o.Shown, r.folder)
	rs.background.Go(func() {
		defer contain.Recover("ending a sandbox", nil)
		keep(ctx, in, r.exported(r.o.Sandboxes), p)
		rs.sessions.sandboxEnded(sess, in)
	})
	return in, nil
}

// keep starts the sandbox of an interpreter and returns when it has ended. If that panics,
// it ends too, and how is an error.
func keep(ctx context.Context, in *interpreter, sandboxes Sandboxes, p oci.Process) {
	defer close(in.ended)
	defer contain.Recover("starting or waiting for a sandbox", func(err error) {
		in.exit, in.err = oci.Exit{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL}, err
		in.kill(err)
		select {
		case <-in.started:
		default:
			close(in.started)
		}
	})
	in.exit, in.err = in.supervise(sandboxes.Start(ctx, p))
}

// supervise takes over a started sandbox, and returns once it has ended.
func (in *interpreter) supervise(sb Sandbox, err error) (oci.Exit, error) {
	if err != nil {
		close(in.started)
		return oci.Exit{}, err
	}
	if dir := sb.Workspace(); dir != nil {
		in.workspace = artifacts.NewWorkspace(dir, in.mounted)
	}
	in.sandbox = sb
	close(in.started)
	return sb.Wait()
}

// A runnerSandbox is the sandbox of an interpreter, with the methods that its
// connection uses.
type runnerSandbox struct{ in *interpreter }

func (s runnerSandbox) Connect() (net.Conn, error) {
	<-s.in.started
	if s.in.sandbox != nil && s.in.sandbox.Conn() != nil {
		return s.in.sandbox.Conn(), nil
	}
	return nil, errors.New("the sandbox has ended")
}

func (s runnerSandbox) Signal() bool { return s.in.signal(syscall.SIGURG) }

// An interrupter raises KeyboardInterrupt in the code of one run. Python would miss a
// signal that arrives before the code begins, so the interrupter holds it until then.
type interrupter struct {
	in *interpreter

	mu            sync.Mutex
	begun, wanted bool
}

func (i *interrupter) interrupt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.wanted = true; i.begun {
		i.in.signal(syscall.SIGINT)
	}
}

// begin records that the code begins, and sends the signal if one was held.
func (i *interrupter) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.begun = true; i.wanted {
		i.in.signal(syscall.SIGINT)
	}
}

// signal sends a signal to Python, and reports whether it has started.
func (in *interpreter) signal(sig syscall.Signal) bool {
	sb := in.sandboxNow()
	if sb == nil {
		return false
	}
	sb.Signal(sig)
	return true
}

// sandboxNow returns the sandbox, nil if it has not started.
func (in *interpreter) sandboxNow() Sandbox {
	select {
	case <-in.started:
		return in.sandbox
	default:
		return nil
	}
}

func (s runnerSandbox) Kill(why error)         { s.in.kill(why) }
func (s runnerSandbox) Ended() <-chan struct{} { return s.in.ended }

// typedInput returns the function that reads a line of input for the code. It reads
// one line at a time, after the output that the code has already written.
func (in *interpreter) typedInput(read func(context.Context) (string, error)) func(context.Context) (string, error) {
	var turn sync.Mutex
	return func(ctx context.Context) (string, error) {
		turn.Lock()
		defer turn.Unlock()
		in.pipes.Flush()
		return read(ctx)
	}
}

// run has the interpreter run code. It returns when the sandbox has ended, or its
// session waits for the next run; ctx ends both.
func (in *interpreter) run(ctx context.Context, start runner.Start, g *gate.Gate, host runner.Host) ending {
	done, why := in.conn.Run(ctx, start, g, host)
	if done.Kept {
		in.pipes.Settle()
		return ending{done: done, exit: oci.Exit{Code: done.ExitCode}}
	}
	if done.Ended {
		in.sandbox.Finished(done.ExitCode)
	}
	<-in.ended
	in.pipes.Drain(done.Ended)
	return ending{done: done, why: why, exit: in.exit, err: in.err}
}

// collect collects the files that a run has left in /workspace/out, and its
// streams. The run has ended: nothing more of it is read, and no call is being
// answered.
func (in *interpreter) collect(files *artifacts.Collector, continues bool) artifacts.Published {
	if in.workspace != nil {
		files.Collect(in.workspace)
		if !continues {
			files.NoteLost(in.workspace)
		}
	}
	in.collectStreams(files, continues)
	return files.Finish()
}

// hold stops the code of the active run, and puts its deadline off, until release is called:
// the user is being asked. Holds nest.
func (in *interpreter) hold() (release func()) {
	resume, thaw := in.conn.Pause(), in.freezeSandbox()
	return sync.OnceFunc(func() {
		defer contain.Recover("letting code go on", in.kill) // or it would stand still for good
		defer resume()
		thaw(true)
	})
}

// freezeSandbox stops everything in the sandbox until thaw is called.
func (in *interpreter) freezeSandbox() (thaw func(held bool)) {
	if sb := in.sandboxNow(); sb != nil {
		return in.freezes.begin(sb)
	}
	return func(bool) {} // no code runs
}

// freeze stops everything in the sandbox until thaw, between the runs of a session.
func (in *interpreter) freeze() {
	if in.thawIdle == nil {
		in.thawIdle = in.freezeSandbox()
	}
}

// thaw resumes what freeze has stopped.
func (in *interpreter) thaw() {
	if in.thawIdle != nil {
		in.thawIdle(false)
		in.thawIdle = nil
	}
}

// end ends the sandbox, if it has not ended, and releases what it used.
func (in *interpreter) end(why error) {
	in.kill(why)
	<-in.ended
	in.conn.Close()
	if in.sandbox != nil {
		_ = in.sandbox.Close() // the run has already reported the error of Wait
	}
	in.pipes.Close()
	in.previous.close()
}
