package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/deadline"
	"github.com/toolcell/toolcell/internal/text"
)

// maxCalls bounds the calls of one run that are being answered at the same time.
const maxCalls = 256

// frameTime bounds how long a frame may take from its length to its last byte. The
// runner writes it at once; code that leaves one unfinished would keep room that
// others wait for.
const frameTime = 10 * time.Second

// lateReplies bounds writing replies to calls whose run has ended.
const lateReplies = 2 * time.Second

// An exchange is one exchange over a connection.
type exchange struct {
	*Conn
	start    Start
	gate     *gate.Gate
	host     Host
	deadline *deadline.Deadline
	pauses   *pauses
	dump     *stackDump
	account  *account
	stopped  func() bool // the sandbox is being killed

	mu     sync.Mutex
	done   *frame
	begun  bool      // the runner said that the code begins
	ended  bool      // the runner said that it has ended
	broken error     // the violation of the protocol, if any
	late   time.Time // when writing fails for good; zero if it does not

	giveUp map[int64]context.CancelFunc // the calls that are being answered
}

// serve reads frames and answers calls until the runner is done or gone, or ctx
// ends. When it returns, no call is being answered any more, and the connection
// is closed unless the session continues.
func (r *exchange) serve(ctx context.Context) {
	r.stopped = func() bool { return ctx.Err() != nil }
	defer context.AfterFunc(ctx, func() {
		defer contain.Recover("ending the connection of a run", func(error) { r.conn.Close() })
		r.hangUp()
	})()
	calling, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	err := contain.Call("reading what the code sends", func() error { return r.readFrames(calling, &calls) })
	if _, ok := errors.AsType[*contain.PanicError](err); ok {
		r.breakOff(err)
	}
	cancel() // before the wait: the answers have no reader any more
	if r.kept() {
		r.endWritingAt(time.Now().Add(lateReplies))
	} else {
		r.conn.Close()
	}
	calls.Wait()
	r.endWritingAt(time.Time{})
	if errors.Is(err, ErrProtocol) {
		r.breakOff(err)
	}
}

// endTimeout is how long a sandbox that is being killed keeps its connection: if it
// lost it at once, its code would report that before it ends.
const endTimeout = 2 * time.Second

// hangUp closes the connection of a run that was stopped.
func (r *exchange) hangUp() {
	select {
	case <-r.sandbox.Ended():
	case <-time.After(endTimeout):
	}
	r.conn.Close()
}

// readFrames takes in frames until there are no more. Goroutines beside it answer
// the calls, and stay for the next one: a new one would have to grow its stack
// each time.
func (r *exchange) readFrames(ctx context.Context, calls *sync.WaitGroup) error {
	type call struct {
		f       *frame
		number  int
		release func() // of the frame's room
	}
	made := 0
	next := make(chan call)
	defer close(next)
	count := semaphore.NewWeighted(maxCalls)
	if r.ready { // in an earlier run of the session
		if err := r.sendStart(); err != nil {
			return err
		}
	}
	for {
		f, release, err := r.nextFrame(ctx)
		if err != nil {
			return err
		}
		if f.Type != "call" {
			release()
			if last, err := r.handleFrame(f); last || err != nil {
				return err
			}
			continue
		}
		if err := count.Acquire(ctx, 1); err != nil {
			release()
			return err
		}
		made++
		r.keepCancel(ctx, f)
		c := call{f, made, release}
		select {
		case next <- c:
			continue
		default: // all are busy
		}
		calls.Go(func() {
			defer contain.Recover("answering the calls of code", r.breakOff)
			for ; c.f != nil; c = <-next {
				r.answerOne(c.f.ctx, c.number, c.f, c.release)
				count.Release(1)
			}
		})
	}
}

// nextFrame reads a frame as soon as there is room for it.
func (r *exchange) nextFrame(ctx context.Context) (f *frame, release func(), err error) {
	n, err := r.nextSize()
	if err != nil {
		return nil, nil, err
	}
	release, done, err := r.awaitRoom(ctx, n)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	kept, giveBack := false, release
	defer func() {
		if !kept {
			giveBack()
		}
	}()
	if n > freeSize {
		defer r.pauses.reading(r.conn)()
	}
	contain.Point("runner: reading a frame")
	f, err = readFrame(ctx, r.in, n)
	if kept = err == nil; kept {
		return f, release, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: it has %d bytes and was not whole after %s", ErrProtocol, n, frameTime)
	}
	return nil, nil, err
}

// awaitRoom waits until there is room for n bytes of this run. It fails when ctx
// or the sandbox ends. The caller calls done when it has read them.
//
// A frame that takes room of other runs keeps the run from being paused until it is
// read: otherwise it would keep the room for as long as the user is asked.
func (r *exchange) awaitRoom(ctx context.Context, n int) (release, done func(), err error) {
	if release, ok := r.account.tryOwn(n); ok {
		return release, func() {}, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer contain.Recover("waiting for the end of a sandbox", func(err error) { r.breakOff(err); cancel() })
		select {
		case <-r.sandbox.Ended():
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		if release, err = r.account.acquire(ctx, n); err != nil {
			return nil, nil, err
		}
		if done, ok := r.pauses.prevent(); ok {
			return release, done, nil
		}
		release()
		if err := r.pauses.wait(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// nextSize reads the length in front of a frame, and the text that may come
// before it once the time is up.
func (r *exchange) nextSize() (int, error) {
	var head [4]byte
	_, err := io.ReadFull(r.in, head[:])
	if err == nil && isText(head) && r.deadline.Passed() {
		head, err = r.dump.readText(r.in, head)
	}
	if err != nil {
		return 0, err
	}
	return frameSize(head)
}

// handleFrame takes in a frame other than a call, each kind only where it may
// come. It reports whether the frame is the last one of the run.
func (r *exchange) handleFrame(f *frame) (last bool, err error) {
	next := r.note(f)
	if next == nil {
		return false, fmt.Errorf("%w: %q where it may not come", ErrProtocol, text.Bound(f.Type, 40))
	}
	return next()
}

// note records what a frame says, and returns what to do about it; nil if it may not come.
func (r *exchange) note(f *frame) (next func() (last bool, err error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	contain.Point("runner: locked")
	done := r.done != nil
	switch {
	case f.Type == "ready" && !r.ready:
		r.ready = true
		return func() (bool, error) { return false, r.sendStart() }
	case f.Type == "begun" && r.start.Begun != nil && r.ready && !r.begun && !done:
		r.begun = true
		return func() (bool, error) { r.start.Begun(); return false, nil }
	case f.Type == "done" && r.ready && !done:
		f.Result, f.Error, f.Names = ownText(f.Result), ownText(f.Error), ownText(f.Names)
		r.done = f
		return func() (bool, error) { r.dump.finish(); return r.kept(), nil }
	case f.Type == "end" && done:
		r.done.ExitCode, r.ended = f.ExitCode, true
		return func() (bool, error) { return true, nil }
	case f.Type == "cancel" && r.ready:
		if cancel := r.giveUp[f.ID]; cancel != nil {
			cancel()
		}
		return func() (bool, error) { return false, nil }
	case f.Type == "where" && r.ready && r.deadline.Passed():
		return func() (bool, error) { return false, r.dump.addFrames(f.Frames) }
	}
	return nil
}

// answerOne is answer, and ends the run if that panics: half a frame may be written.
func (r *exchange) answerOne(ctx context.Context, number int, call *frame, release func()) {
	release = sync.OnceFunc(contain.Func("giving back the room of a frame", release))
	defer release()
	defer contain.Recover("replying to a call of code", func(err error) {
		r.breakOff(err)
		r.conn.Close()
	})
	r.answer(ctx, number, call, release)
}

// carryOut carries out a call. A panic is the error of that call.
func (r *exchange) carryOut(ctx context.Context, number int, call *frame) (answer Answer, err error) {
	defer contain.Error("carrying out a call of code", &err)
	return CarryOut(ctx, r.gate, r.host, number, call.Method, call.Params)
}

// answer carries out one call, and replies. It calls release when the
// call's frame is no longer needed.
func (r *exchange) answer(ctx context.Context, number int, call *frame, release func()) {
	if call.Method == ReadInput && r.start.Input {
		defer r.deadline.Pause()()
	}
	defer r.dropCancel(call)
	answer, err := r.carryOut(ctx, number, call)
	if r.stopped() {
		release()
		return // its code would report the error while it is being killed
	}
	call.Params = nil // the worker in readFrames refers to call until its next one
	if err == nil && answer.Make != nil {
		err = r.replyMade(ctx, call.ID, answer.Make, release)
	} else {
		release()
		err = r.reply(call.ID, answer.JSON, err)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.breakOff(fmt.Errorf("%w: the session does not take in answers", ErrProtocol))
	case err != nil:
		r.conn.Close() // half a frame may be written; most often the runner is gone
	}
}

// keepCancel lets the code give a call up by its ID, from its next frame on.
func (r *exchange) keepCancel(ctx context.Context, call *frame) {
	call.ctx, call.cancel = context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.giveUp[call.ID] = call.cancel
}

// dropCancel forgets a call that was answered.
func (r *exchange) dropCancel(call *frame) {
	defer call.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.giveUp, call.ID)
}

// breakOff records that the runner has violated the protocol, or that we cannot go on.
func (r *exchange) breakOff(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = why
}

// kept reports whether the code has ended and its session continues.
func (r *exchange) kept() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.start.Session != "" && r.done != nil && r.done.Kept && r.broken == nil
}

// why returns what ended the run before its time, if anything did.
func (r *exchange) why(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrTimeout) || r.broken != nil && r.deadline.Passed():
		return ErrTimeout // the answer to the request for a stack may be anything
	case r.broken != nil:
		return r.broken
	default:
		return cause
	}
}

// Bounds on the names that a run has defined. The runner keeps to them.
const (
	maxNames = 100
	maxName  = 4 * 60 // bytes
)

// result returns what the runner has reported.
func (r *exchange) result(kept bool) Done {
	d := Done{Ready: r.ready, Kept: kept, Ended: r.ended, Stack: r.dump.lines(r.start.Code, r.codeFile(), r.hostDir)}
	if f := r.done; f != nil {
		d.Reported, d.ExitCode, d.Limit, d.Cause = true, f.ExitCode&0xff, f.Limit, f.Cause
		for name := range strings.FieldsSeq(jsonString(f.Names)) {
			if len(name) <= maxName && len(d.Names) < maxNames {
				d.Names = append(d.Names, name)
			}
		}
		d.Result, d.Error = jsonString(f.Result), jsonString(f.Error)
	}
	return d
}
