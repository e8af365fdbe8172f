package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci"
	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"
)

// A prompt runs what is typed, block after block, in one session.
type prompt struct {
	s      *console.Streams
	bridge *bridge.Server
	req    bridge.Request // of each block, but for its code
	input  lineSource
	person bool // at a terminal
	quiet  bool

	count int             // of sessions that were begun
	said  map[string]bool // notes
	last  *bridge.Result  // of the last block; nil before the first
	where cursor

	mu     sync.Mutex
	cancel context.CancelFunc // of the run that goes on, if one does
}

// A lineSource gives the lines that are typed. It ends with io.EOF.
type lineSource interface {
	line(ctx context.Context, mark string) (string, error)
	close()
}

// errAbandoned is the line that Ctrl-C makes of one that was being typed.
var errAbandoned = errors.New("the line was abandoned")

// execPrompt is exec -i. Code from the command line runs first, in the session.
func execPrompt(c *cli.Context, s *console.Streams, settings settings.Settings) (err error) {
	if settings.OutputNamed {
		return console.Usagef("give either -i or --output, not both")
	}
	first, err := readScript(c, s.In)
	if err != nil {
		return err
	}
	// Whoever sits at it thinks, and nobody else waits for the place.
	settings.Sessions, settings.SessionIdle = 1, 30*24*time.Hour
	p, err := openForShell(c, s, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	for _, name := range c.StringSlice("server") {
		if _, err := p.proxy.Lookup(name); err != nil && name != "*" {
			return &console.ExitError{Code: console.ExitUsage, Err: err}
		}
	}
	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	q := &prompt{
		s: s, bridge: p.bridge, req: shellRequest(c, s, settings, first.argv),
		person: console.Terminal(s.In) && console.Terminal(s.Out), quiet: c.Bool("quiet"), said: map[string]bool{},
	}
	broken := func() { cancel(unix.EPIPE) }
	q.req.Stdout, q.req.Stderr = live{s.Out, ctx, broken, &q.where}, live{s.Err, ctx, broken, &q.where}
	q.input = q.openInput(settings)
	defer q.input.close()
	if q.person {
		defer s.Signals.OnInterrupt(q.interrupt)()
		if !q.quiet {
			fmt.Fprintf(s.Err, "Python in a sandbox of %s. Ctrl-C stops what runs, Ctrl-D or exit() leaves.\n", settings.Image)
		}
	}
	err = q.loop(ctx, first.text)
	if errors.Is(context.Cause(ctx), unix.EPIPE) {
		return &console.ExitError{Code: console.Stopped{Signal: unix.SIGPIPE}.Code()}
	}
	return err
}

// openInput chooses how lines are read: with an editor and a history where the
// terminal can show them.
func (q *prompt) openInput(settings settings.Settings) lineSource {
	if q.person && canEdit() {
		return newEditor(settings)
	}
	return newPlainLines(q.s, q.person)
}

// loop reads and runs blocks until there are no more, or the code leaves.
func (q *prompt) loop(ctx context.Context, first string) error {
	if first != "" {
		if over, err := q.run(ctx, first); over || err != nil {
			return err
		}
	}
	for b := (block{}); ; {
		line, err := q.input.line(ctx, q.mark(&b))
		var ready []string
		switch {
		case err == nil:
			ready = b.add(line)
		case errors.Is(err, errAbandoned):
			b = block{}
			fmt.Fprintln(q.s.Err, "KeyboardInterrupt")
		case errors.Is(err, io.EOF):
			ready = b.rest()
		default:
			return err
		}
		for _, code := range ready {
			if over, err := q.run(ctx, code); over || err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return q.leave()
		}
	}
}

// mark is what stands before the next line: nothing unless a person sees it.
func (q *prompt) mark(b *block) string {
	if !q.person {
		return ""
	}
	if b.empty() {
		return ">>> "
	}
	return "... "
}

// run runs one block. Over says that its code leaves the prompt, with what the
// error says.
func (q *prompt) run(ctx context.Context, code string) (over bool, err error) {
	if q.last == nil || q.last.Session == sessionEnded {
		// A name that was not used yet: the bridge has nothing to say of it.
		q.count++
	}
	req := q.req
	req.Code, req.Session = code, fmt.Sprintf("prompt %d", q.count)
	runCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	q.setCancel(cancel)
	r := q.bridge.Run(runCtx, req)
	q.setCancel(nil)
	q.last = r
	if ctx.Err() != nil {
		return true, context.Cause(ctx)
	}
	if q.person {
		q.where.newLine(q.s.Out)
	}
	q.print(r, r.Status == bridge.StatusCancelled && runCtx.Err() != nil)
	var hint *oci.HintError
	switch {
	case errors.As(r.Cause(), &hint):
		return true, exitOf(r) // it would be so with the next block
	case r.Session == sessionEnded && byItself(r):
		return true, exitOf(r)
	case r.Session == sessionEnded:
		fmt.Fprintf(q.s.Err, "%s the session was ended: its variables and files are gone\n", console.ColorsFor(q.s.Err).Yellow("toolcell:"))
	}
	return false, nil
}

// sessionEnded is what a Result says of a session that is no more.
const sessionEnded = "ended"

// byItself reports whether a session's code wanted its end, as exit() does.
func byItself(r *bridge.Result) bool {
	return r.Status == bridge.StatusSuccess || r.Status == bridge.StatusError && r.ExitCode != nil && *r.ExitCode <= 128
}

// print shows what the streams have not shown. What holds for every run is said
// once, and the end of a session below it all.
func (q *prompt) print(r *bridge.Result, cancelled bool) {
	shown := *r
	shown.Notes = nil
	for _, n := range r.Notes {
		if !q.said[n] && r.Session != sessionEnded {
			shown.Notes = append(shown.Notes, n)
		}
		q.said[n] = true
	}
	if cancelled {
		shown.Error = "by Ctrl-C"
	}
	printResult(&shown, q.s, q.quiet)
	if !q.quiet {
		printLeavings(&shown, q.s)
	}
}

// leave ends the prompt at the end of its input. A person has seen how things
// went; to a program it is told as a shell tells it of its last command.
func (q *prompt) leave() error {
	if q.person {
		fmt.Fprintln(q.s.Out)
		return nil
	}
	if q.last == nil {
		return nil
	}
	return exitOf(q.last)
}

// interrupt is what Ctrl-C does while the prompt is there.
func (q *prompt) interrupt() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cancel != nil {
		q.cancel()
	} else if l, ok := q.input.(*plainLines); ok {
		l.abandon()
	}
}

func (q *prompt) setCancel(cancel context.CancelFunc) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.cancel = cancel
}

// A cursor knows whether what was written last ended its line: a prompt begins
// one of its own.
type cursor struct {
	mu     sync.Mutex
	inLine bool
}

func (c *cursor) wrote(b []byte) {
	if c == nil || len(b) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inLine = b[len(b)-1] != '\n'
}

func (c *cursor) newLine(out *os.File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inLine {
		fmt.Fprintln(out)
	}
	c.inLine = false
}
