package bridge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/toolcell/toolcell/bridge/artifacts"
	"github.com/toolcell/toolcell/bridge/output"
	"github.com/toolcell/toolcell/oci"
)

// A box is a sandbox with a runner in it: that of one run, or of a session.
type box struct {
	image   Image
	wires   *output.Pipes
	control chan net.Conn // gives the connection once, or is closed if there is none
	conn    net.Conn      // once it came
	in      *bufio.Reader // of conn: short frames come several at once
	ready   bool          // a run has begun in it
	runs    int           // that have
	urge    chan struct{} // has its process say where it is
	said    chan int      // gets the exit code if the runner says that it has ended
	kill    context.CancelCauseFunc
	ended   chan struct{} // then exit and err are known

	// Once the connection came, or cannot: /workspace, or why it cannot be had.
	workspaceDir *os.File
	workspace    *artifacts.Workspace // nil if there is none
	workspaceErr error

	exit oci.Exit
	err  error
}

// open starts a sandbox, which ends with the server at the latest.
func (s *Server) open(image Image, sess *session) (*box, error) {
	w, err := s.takeWires()
	if err != nil {
		return nil, err
	}
	b := &box{
		image: image, wires: w, control: make(chan net.Conn, 1), said: make(chan int, 1), ended: make(chan struct{}),
		urge: make(chan struct{}, 1),
	}
	sess.box = b
	ctx, kill := context.WithCancelCause(s.life)
	b.kill = kill
	p := s.process(image, w)
	p.Workspace = func(dir *os.File, err error) {
		if b.workspaceDir, b.workspaceErr = dir, err; dir != nil {
			b.workspace = artifacts.NewWorkspace(dir)
		}
	}
	p.Control, p.Ended, p.Kept, p.Urge = func(c net.Conn) { b.control <- c }, b.said, sess.name != "", b.urge
	s.runs.Go(func() {
		b.exit, b.err = s.o.Sandbox.Run(ctx, p)
		close(b.control)
		close(b.ended)
		s.sessions.noticeEnd(sess, b)
		time.AfterFunc(afterAnswer, s.makeSpare)
	})
	return b, nil
}

// hold lets the runner in b run the code of one talk. It returns when the
// sandbox has ended, or the session goes on; ctx ends both.
func (b *box) hold(ctx context.Context, t *talk, code string) outcome {
	stop := context.AfterFunc(ctx, func() { b.kill(context.Cause(ctx)) })
	defer stop()
	if !b.ready {
		if b.conn = <-b.control; b.conn != nil {
			b.in = bufio.NewReader(b.conn)
		}
	}
	if b.conn != nil {
		t.serve(ctx, b.conn, b.in, code)
	}
	b.runs++
	if b.ready = true; t.kept() && t.inTime() && stop() {
		b.wires.Settle()
		return outcome{exit: oci.Exit{Code: t.doneFrame().ExitCode & 0xff}, talk: t, wires: b.wires, image: b.image.Name, kept: true}
	}
	if t.broken() {
		b.kill(errBroken) // it is of no further use
	}
	<-b.ended
	b.wires.Drain(t.saidEnd())
	return outcome{exit: b.exit, err: b.err, talk: t, wires: b.wires, image: b.image.Name}
}

// codeFile is what the runner calls the code of the next run.
func (b *box) codeFile() string {
	if b.runs == 0 {
		return "<run_python>"
	}
	return fmt.Sprintf("<run_python %d>", b.runs+1)
}

// errBroken is why a sandbox is ended whose runner broke the talk.
var errBroken = errors.New("the talk with the sandbox is broken")

// end ends the sandbox, if it has not ended, and lets go of it.
func (b *box) end(why error) {
	b.kill(why)
	<-b.ended
	if b.conn != nil {
		b.conn.Close()
	} else if c := <-b.control; c != nil {
		c.Close() // nobody has spoken with it
	}
	b.wires.Close()
	if b.workspaceDir != nil {
		b.workspaceDir.Close()
	}
}

// afterAnswer is how long what makes ready for the next run waits, so that it
// does not take the processor from the answer.
const afterAnswer = 2 * time.Millisecond

// takeWires gives the spare ones, or new ones.
func (s *Server) takeWires() (*output.Pipes, error) {
	select {
	case w := <-s.spare:
		return w, nil
	default:
		return output.Open(s.o.MaxOutput)
	}
}

// makeSpare makes wires for the next run, unless there are some.
func (s *Server) makeSpare() {
	if len(s.spare) > 0 || s.life.Err() != nil {
		return
	}
	w, err := output.Open(s.o.MaxOutput)
	if err != nil {
		return // the next run will tell
	}
	select {
	case s.spare <- w:
	default:
		w.Close()
	}
	if s.life.Err() != nil {
		s.dropSpare()
	}
}

// dropSpare is called once the server ends.
func (s *Server) dropSpare() {
	select {
	case w := <-s.spare:
		w.Close()
	default:
	}
}
