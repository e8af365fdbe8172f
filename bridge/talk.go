package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/text"
	"golang.org/x/sync/semaphore"
)

// Bounds on what one sandbox may have in the air at once.
const (
	maxCalls      = 256       // calls being answered
	maxCallsBytes = 256 << 20 // of their frames
)

// A talk is the host's end of the conversation with one runner.
type talk struct {
	s        *Server
	plan     plan
	policy   *policy.Run // what this run may call, and how often
	effects  effects
	display  func(name string, data []byte, rasterFollows bool) error
	progress progress
	conn     net.Conn  // serve's
	in       io.Reader // what comes from conn
	writing  sync.Mutex

	mu    sync.Mutex
	ready bool
	left  map[string]string // servers that a search could not look into, and why
	done  *message
	over  bool  // the runner said that it has ended
	err   error // what broke it

	where         whereabouts
	code          string   // of the run
	codeFile      string   // what the runner calls it
	savedFailures []string // why saved tools were not had

	session string     // its name, if the run goes on in one
	ended   chan<- int // gets the exit code if the runner said that it has ended
}

// newTalk prepares the talk of one run with the runner in b.
func newTalk(s *Server, p plan, req Request, b *box) *talk {
	return &talk{
		s: s, plan: p, policy: s.o.Policy.NewRun(), progress: progress{tell: req.Progress},
		session: req.Session, ready: b.ready, ended: b.said, code: req.Code, codeFile: b.codeFile(),
	}
}

// lastReplies is how long the runner of a session has to take in answers that
// nobody waits for.
const lastReplies = 2 * time.Second

// serve holds the conversation over conn, of which in reads, until the runner is
// done or gone, or ctx ends. When it returns, no call is being answered any
// more, and conn is closed, unless the session is kept.
func (t *talk) serve(ctx context.Context, conn net.Conn, in io.Reader, code string) {
	t.conn, t.in = conn, in
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	calling, cancel := context.WithCancel(ctx)
	var calls sync.WaitGroup
	err := t.read(calling, code, &calls)
	cancel() // before the wait: nobody is left to hear the answers
	if t.kept() {
		_ = conn.SetWriteDeadline(time.Now().Add(lastReplies))
	} else {
		conn.Close()
	}
	calls.Wait()
	_ = conn.SetWriteDeadline(time.Time{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(err, errFrame) {
		t.err = err
	}
}

// read takes in frames until there are no more. Calls are answered beside it, by
// goroutines that stay for the next one: a new one would have to grow its stack
// each time.
func (t *talk) read(ctx context.Context, code string, calls *sync.WaitGroup) error {
	type call struct {
		m      *message
		weight int64
	}
	next := make(chan call)
	defer close(next)
	count := semaphore.NewWeighted(maxCalls)
	bytes := semaphore.NewWeighted(maxCallsBytes)
	if t.wasReady() { // an earlier run of the session has heard it
		if err := t.send(t.start(code)); err != nil {
			return err
		}
	}
	for {
		n, err := t.nextSize()
		if err != nil {
			return err
		}
		weight := int64(n)
		if err := bytes.Acquire(ctx, weight); err != nil {
			return err
		}
		m, err := readFrame(t.in, n)
		if err != nil {
			return err
		}
		if m.Type != "call" {
			bytes.Release(weight)
			if m.Type == "end" && t.doneFrame() != nil {
				t.end(m.ExitCode & 0xff)
				return nil
			}
			if err := t.note(m, code); err != nil || t.kept() {
				return err
			}
			continue
		}
		if err := count.Acquire(ctx, 1); err != nil {
			return err
		}
		select {
		case next <- call{m, weight}:
			continue
		default: // all are busy
		}
		calls.Go(func() {
			for c := (call{m, weight}); c.m != nil; c = <-next {
				t.answer(ctx, c.m)
				bytes.Release(c.weight)
				count.Release(1)
			}
		})
	}
}

// nextSize reads the length in front of a frame, and what may come before it
// once the time is up.
func (t *talk) nextSize() (int, error) {
	var head [4]byte
	_, err := io.ReadFull(t.in, head[:])
	if err == nil && isText(head) && t.timeIsUp() {
		head, err = t.readText(t.in, head)
	}
	if err != nil {
		return 0, err
	}
	return frameSize(head)
}

// note takes in a frame that is no call, each kind only where it may come.
func (t *talk) note(m *message, code string) error {
	t.mu.Lock()
	ready, done := t.ready, t.done != nil
	switch {
	case m.Type == "ready" && !ready:
		t.ready = true
		t.mu.Unlock()
		return t.send(t.start(code))
	case m.Type == "done" && ready && !done:
		t.done = m
		t.mu.Unlock()
		t.hearWhere()
		return nil
	case m.Type == "where" && ready && t.timeIsUp():
		t.mu.Unlock()
		return t.noteWhere(m.Frames)
	}
	t.mu.Unlock()
	return fmt.Errorf("%w: %q where it may not come", errFrame, text.Bound(m.Type, 40))
}

// start is the first frame to the runner.
func (t *talk) start(code string) *message {
	m := &message{
		Type: "start", Code: code, Argv: t.plan.argv, Session: t.session, Saved: t.savedNames(),
	}
	for _, st := range t.plan.servers {
		m.Servers = append(m.Servers, serverInfo{
			Name: st.Name, Alias: st.Alias, Description: text.Bound(st.Description, 1<<10), Granted: t.plan.granted[st.Name],
		})
	}
	return m
}

// answer carries out one call and replies.
func (t *talk) answer(ctx context.Context, m *message) {
	reply := &message{Type: "reply", ID: m.ID}
	result, err := t.call(ctx, m.Method, m.Params)
	if err == nil {
		reply.Result = result
	} else {
		reply.Error, _ = json.Marshal(asCallError(err)) // strings always encode
	}
	err = t.send(reply)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.err = fmt.Errorf("%w: the session does not take in answers", errFrame)
		return
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, io.ErrClosedPipe) {
		t.s.o.Log.Debug("replying to the sandbox", "err", err)
	}
}

func (t *talk) send(m *message) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	return writeFrame(t.conn, m)
}

func (t *talk) wasReady() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ready
}

func (t *talk) doneFrame() *message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done
}

// end notes that the runner has ended, with this code.
func (t *talk) end(code int) {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.ended <- code // there is room, and it comes once
}

// kept reports whether the run is over and its session goes on.
func (t *talk) kept() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session != "" && t.done != nil && t.done.Kept && t.err == nil
}

func (t *talk) saidEnd() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// broken reports whether the sandbox sent what no runner sends.
func (t *talk) broken() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err != nil
}
