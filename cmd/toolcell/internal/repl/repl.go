// Package repl is the prompt of toolcell exec -i: it reads lines, from a person
// at a terminal or from a program, puts them together to blocks as Python's own
// prompt does, and runs each block in one session. It knows no command line, and
// starts nothing but runs.
package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/doctor"
)

// Options say what to run, and how to show what came of it. All but First,
// History and Quiet must be set, the request's Stdout and Stderr too.
type Options struct {
	Streams *console.Streams
	Run     func(context.Context, run.Request) *run.Result
	Request run.Request // of each block, but for its code and session
	// Complete returns what may continue a dotted name in the request's session.
	Complete func(ctx context.Context, req run.Request, dotted string) []string
	First    string // code that runs before the first line, if any
	// Greeting says what the code runs on. It may take as long as a pull.
	Greeting func(context.Context) string
	History  string // file of the lines typed earlier; none if empty
	Quiet    bool   // no greeting

	// Ask answers a question of a run by lines that it reads at the prompt. Where no
	// person is at the prompt, the request's own Ask does.
	Ask func(ctx context.Context, q consent.Question, read func(ctx context.Context, mark string) (string, error)) consent.Answer
	// Show prints what Request's streams have not shown of a result.
	Show func(*run.Result)
	// ExitError returns the error that ends the program as a result asks for.
	ExitError func(*run.Result) error
}

// Run reads and runs code until the input ends or the code exits, and returns the
// error that ends the program.
func Run(ctx context.Context, o Options) error {
	q := &prompt{Options: o, person: console.Terminal(o.Streams.In) && console.Terminal(o.Streams.Out), seen: map[string]bool{}, reading: make(chan struct{}, 1)}
	q.Request.Stdout, q.Request.Stderr = io.MultiWriter(&q.cursor, o.Request.Stdout), io.MultiWriter(&q.cursor, o.Request.Stderr)
	q.Request.Input = q.readInput
	if q.person {
		q.Request.Ask = func(ctx context.Context, asked consent.Question) consent.Answer {
			return o.Ask(ctx, asked, q.readAnswer)
		}
	}
	q.Request.Running = func(interrupt func()) {
		if o.Request.Running != nil {
			o.Request.Running(interrupt)
		}
		q.setInterrupt(interrupt)
	}
	q.input = q.openInput(ctx)
	defer q.input.close()
	if q.person {
		if !o.Quiet {
			greeting := o.Greeting(ctx) // Ctrl-C still ends the program
			fmt.Fprintf(o.Streams.Err, "%s. Ctrl-C interrupts what runs, Ctrl-D or exit() leaves.\n", greeting)
		}
		defer o.Streams.Signals.OnInterrupt(q.interrupt)()
	}
	return q.loop(ctx, o.First)
}

// A prompt runs typed code, block after block, in one session.
type prompt struct {
	Options
	input  lineSource
	person bool // at a terminal

	count  int             // of sessions that were begun
	runs   atomic.Int64    // that have ended
	seen   map[string]bool // notes that were shown
	last   *run.Result     // of the last block; nil before the first
	cursor cursor

	reading chan struct{} // has room while no run reads a line

	mu          sync.Mutex
	cancel      context.CancelFunc // of the active run, if any
	interruptIt func()             // raises KeyboardInterrupt in its code; nil before that runs and after
	abandonIt   func()             // ends the line that the code waits for; nil if it waits for none
	continues   bool               // it is not the first of its session
	pressed     bool               // Ctrl-C came for this code, if only behind its last key
}

// A lineSource gives the lines that are typed. It ends with io.EOF. Pasted says that
// the end of the line was not typed.
type lineSource interface {
	line(ctx context.Context, mark string, kind lineKind) (text string, pasted bool, err error)
	close()
}

// A lineKind says what a line is for.
type lineKind int

const (
	codeLine  lineKind = iota // is kept in the history
	inputLine                 // is input of the code
)

// errAbandoned is the line that Ctrl-C makes of one that was being typed.
var errAbandoned = errors.New("the line was abandoned")

// openInput chooses how lines are read: with an editor and a history where the
// terminal can show them.
func (q *prompt) openInput(ctx context.Context) lineSource {
	if q.person && canEdit(q.Streams.Out) {
		complete := func(dotted string) []string { return q.complete(ctx, dotted) }
		if e, err := newEditor(q.History, complete, q.keyTyped); err == nil {
			return e
		}
	}
	return newPlainLines(q.Streams, q.person)
}

// loop reads and runs blocks until there are no more, or the code leaves.
func (q *prompt) loop(ctx context.Context, first string) error {
	if first != "" {
		if over, err := q.runBlock(ctx, first); over || err != nil {
			return err
		}
	}
	for b := (block{}); ; {
		line, pasted, err := q.input.line(ctx, q.mark(&b), codeLine)
		var ready []string
		switch {
		case err == nil && pasted:
			ready = b.paste(line)
		case err == nil:
			ready = b.add(line)
		case errors.Is(err, errAbandoned):
			b = block{}
			fmt.Fprintln(q.Streams.Err, "KeyboardInterrupt")
		case errors.Is(err, io.EOF):
			ready = b.flush()
		default:
			return err
		}
		for _, code := range ready {
			if over, err := q.runBlock(ctx, code); over || err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return q.exitAtEOF()
		}
	}
}

// mark returns the mark before the next line, "" unless a person sees it.
func (q *prompt) mark(b *block) string {
	if !q.person {
		return ""
	}
	if b.empty() {
		return ">>> "
	}
	return "... "
}

// runBlock runs one block. Over says that its code leaves the prompt, with what
// the error says.
func (q *prompt) runBlock(ctx context.Context, code string) (over bool, err error) {
	req := q.request(code)
	runCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	q.setCancel(cancel)
	r := q.Run(runCtx, req)
	q.setCancel(nil)
	q.runs.Add(1)
	q.last = r
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	if q.person && q.cursor.takeRest() != "" {
		fmt.Fprintln(q.Streams.Out)
	}
	q.print(r, r.Status == run.StatusCancelled && runCtx.Err() != nil)
	var hint *doctor.HintError
	switch {
	case errors.As(r.Cause(), &hint):
		return true, q.ExitError(r) // it would be so with the next block
	case r.Session == sessionEnded && endedItself(r):
		return true, q.ExitError(r)
	case r.Session == sessionEnded:
		fmt.Fprintf(q.Streams.Err, "%s the session was ended: its variables and files are gone\n", console.ColorsFor(q.Streams.Err).Yellow("toolcell:"))
	}
	return false, nil
}

// request returns the request to run code in the session, which is a new one if the
// last has ended.
func (q *prompt) request(code string) run.Request {
	if !q.inSession() {
		// A name that was not used yet: the bridge has nothing to say of it.
		q.count++
	}
	req := q.Request
	req.Code, req.Session = code, fmt.Sprintf("prompt %d", q.count)
	if q.count > 1 || q.last != nil {
		req.File = "" // only the first code is the file's
	}
	return req
}

// inSession reports whether there is a session that the next block runs in.
func (q *prompt) inSession() bool { return q.last != nil && q.last.Session != sessionEnded }

// sessionEnded is what a Result says of a session that is no more.
const sessionEnded = "ended"

// endedItself reports whether a session's code wanted its end, as exit() does.
func endedItself(r *run.Result) bool {
	return r.Status == run.StatusSuccess || r.Status == run.StatusError && r.ExitCode != nil && *r.ExitCode <= 128
}

// print shows what the streams have not shown. What holds for every run is said
// once, and the end of a session below it all.
func (q *prompt) print(r *run.Result, cancelled bool) {
	shown := *r
	shown.Notes = nil
	for _, n := range r.Notes {
		if !q.seen[n] && r.Session != sessionEnded {
			shown.Notes = append(shown.Notes, n)
		}
		q.seen[n] = true
	}
	if cancelled {
		shown.Error = "by Ctrl-C"
	}
	q.Show(&shown)
}

// exitAtEOF ends the prompt at the end of its input. A person has seen how things
// went; for a program the exit code is that of the last block, as in a shell.
func (q *prompt) exitAtEOF() error {
	if q.person {
		fmt.Fprintln(q.Streams.Out)
		return nil
	}
	if q.last == nil {
		return nil
	}
	return q.ExitError(q.last)
}

// interrupt handles Ctrl-C while the prompt is open: the code gets a KeyboardInterrupt, and a
// second Ctrl-C ends its session.
func (q *prompt) interrupt() {
	q.mu.Lock()
	defer q.mu.Unlock()
	l, plain := q.input.(*plainLines)
	switch {
	case q.abandonIt != nil:
		q.abandonIt() // as the key does while the line is edited
		q.abandonIt = nil
	case q.interruptIt != nil:
		q.interruptIt()
		q.interruptIt, q.pressed = nil, true
	case q.cancel != nil && (q.pressed || !q.continues):
		q.cancel()
	case q.cancel == nil && plain:
		l.abandon()
	default:
		q.pressed = true // the code is about to run
	}
}

// keyTyped notes a key: a Ctrl-C before it was not meant for the code of this line.
func (q *prompt) keyTyped() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cancel == nil {
		q.pressed = false
	}
}

func (q *prompt) setCancel(cancel context.CancelFunc) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cancel, q.interruptIt, q.continues = cancel, nil, q.inSession()
	q.pressed = q.pressed && cancel != nil
}

func (q *prompt) setAbandon(abandon func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.abandonIt = abandon
}

// setInterrupt notes that the code runs, and how to interrupt it.
func (q *prompt) setInterrupt(interrupt func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cancel == nil {
		return
	}
	q.interruptIt = func() {
		interrupt()
		q.remind()
	}
	if q.pressed {
		q.interruptIt()
		q.interruptIt = nil
	}
}

// remindAfter is how long code may take to end once it was interrupted, before
// the user is told how to end it.
const remindAfter = 2 * time.Second

// remind tells the user how to end code that does not heed an interrupt.
func (q *prompt) remind() {
	number := q.runs.Load()
	time.AfterFunc(remindAfter, func() {
		defer contain.Recover("reminding the user", nil)
		if q.runs.Load() == number {
			fmt.Fprintln(q.Streams.Err, "toolcell: the code still runs; Ctrl-C again ends it, with the session")
		}
	})
}
