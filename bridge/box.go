package bridge

import (
	"context"
	"errors"
	"net"

	"github.com/runcell/runcell/oci"
)

// A box is a sandbox with a runner in it: that of one run, or of a session.
type box struct {
	image   Image
	wires   *wires
	control chan net.Conn // gives the connection once, or is closed if there is none
	conn    net.Conn      // once it came
	ready   bool          // a run has begun in it
	said    chan int      // gets the exit code if the runner says that it has ended
	kill    context.CancelCauseFunc
	ended   chan struct{} // then exit and err are known
	exit    oci.Exit
	err     error
}

// open starts a sandbox, which ends with the server at the latest.
func (s *Server) open(image Image, sess *session) (*box, error) {
	w, err := openWires(s.o.MaxOutput)
	if err != nil {
		return nil, err
	}
	b := &box{
		image: image, wires: w, control: make(chan net.Conn, 1), said: make(chan int, 1), ended: make(chan struct{}),
	}
	sess.box = b
	ctx, kill := context.WithCancelCause(s.life)
	b.kill = kill
	p := s.process(image, w)
	p.Control, p.Ended, p.Kept = func(c net.Conn) { b.control <- c }, b.said, sess.name != ""
	s.runs.Add(1)
	go func() {
		defer s.runs.Done()
		b.exit, b.err = s.o.Sandbox.Run(ctx, p)
		close(b.control)
		close(b.ended)
		s.sessions.noticeEnd(sess, b)
	}()
	return b, nil
}

// hold lets the runner in b run the code of one talk. It returns when the
// sandbox has ended, or the session goes on; ctx ends both.
func (b *box) hold(ctx context.Context, t *talk, code string) outcome {
	stop := context.AfterFunc(ctx, func() { b.kill(context.Cause(ctx)) })
	defer stop()
	if !b.ready {
		b.conn = <-b.control
	}
	if b.conn != nil {
		t.serve(ctx, b.conn, code)
	}
	if b.ready = true; t.kept() && stop() {
		b.wires.settle()
		return outcome{exit: oci.Exit{Code: t.doneFrame().ExitCode & 0xff}, talk: t, wires: b.wires, kept: true}
	}
	if t.broken() {
		b.kill(errBroken) // it is of no further use
	}
	<-b.ended
	b.wires.drain(t.saidEnd())
	return outcome{exit: b.exit, err: b.err, talk: t, wires: b.wires}
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
	b.wires.close()
}
