package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
)

// When the time of a run is up, a signal asks its process for the code's stack.
// It answers in two ways:
//
//	text      written by faulthandler from within the signal's handler, so that
//	          it also comes during a long call of C code, when Python code cannot run
//	a frame   written by the runner as soon as Python code can run: it knows which
//	          tasks are awaiting
//
// Both are as hostile as everything else from a sandbox. They may only come after
// the deadline; before it, they break the protocol.

// How long a run that is to be stopped has to answer.
const (
	dumpTimeout  = 250 * time.Millisecond // until anything comes
	frameTimeout = 100 * time.Millisecond // from there until the frame
)

// Bounds on the answer.
const (
	maxDumpText   = 16 << 10  // bytes
	maxDumpFrame  = 512 << 10 // bytes
	maxDumpFrames = 400
)

// A stackDump is the stack that a run has reported.
type stackDump struct {
	came     chan struct{} // closed when something was received
	complete chan struct{} // closed when nothing more will come: the frame is there, or the code has ended

	mu     sync.Mutex
	text   []stackFrame // innermost first, as faulthandler writes it
	frames []stackFrame // outermost first
}

func newStackDump() *stackDump {
	return &stackDump{came: make(chan struct{}), complete: make(chan struct{})}
}

// ask sends the signal and waits for the answer.
func (d *stackDump) ask(ctx context.Context, signal func() bool) {
	if !signal() {
		return // it has not started, or has ended
	}
	select {
	case <-d.came:
	case <-time.After(dumpTimeout):
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-d.complete:
	case <-time.After(frameTimeout):
	case <-ctx.Done():
	}
}

// note closes came or complete, unless it is closed. The caller holds mu.
func (d *stackDump) note(noted chan struct{}) {
	select {
	case <-noted:
	default:
		close(noted)
	}
}

// finish records that nothing more will come.
func (d *stackDump) finish() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(d.came)
	d.note(d.complete)
}

// addFrames takes in the frame of the runner.
func (d *stackDump) addFrames(raw json.RawMessage) error {
	var all []stackFrame
	if len(raw) > maxDumpFrame {
		return fmt.Errorf("%w: a stack that is none", ErrProtocol)
	}
	// Decoded, an item takes many times its text.
	s := rawjson.Scanner{Text: raw, Depth: 1}
	for n := range s.Items {
		if n == maxDumpFrames {
			break
		}
	}
	if !s.AtEnd() && !rawjson.IsNull(raw) || json.Unmarshal(raw, &all) != nil {
		return fmt.Errorf("%w: a stack that is none", ErrProtocol)
	}
	d.mu.Lock()
	d.frames = all
	d.mu.Unlock()
	d.finish()
	return nil
}

// isText reports whether the head of a frame is really the beginning of
// faulthandler's text: as a length, a letter would be out of bounds.
func isText(head [4]byte) bool { return head[0] >= 'A' && head[0] <= 'z' }

// readText takes in faulthandler's text, which begins with head, and returns the
// head of the frame behind it.
func (d *stackDump) readText(r io.Reader, head [4]byte) ([4]byte, error) {
	line, b := string(head[:]), make([]byte, 1)
	for range maxDumpText {
		if _, err := io.ReadFull(r, b); err != nil {
			return head, err
		}
		switch {
		case b[0] == '\n':
			d.addLine(line)
			line = ""
		case b[0] <= maxFrame>>24 && line == "":
			head[0] = b[0]
			_, err := io.ReadFull(r, head[1:])
			return head, err
		default:
			line += string(b)
		}
	}
	return head, fmt.Errorf("%w: a stack of more than %d bytes", ErrProtocol, maxDumpText)
}

var faultLine = text.Pattern(`^  File "([^"]{1,500})", line (\d{1,9}) in (.{1,200})$`)

// addLine takes in a line of faulthandler's text. Headings are left out.
func (d *stackDump) addLine(line string) {
	found := faultLine().FindStringSubmatch(line)
	if found == nil {
		return
	}
	number, _ := strconv.Atoi(found[2]) // nine digits always fit
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.text) < maxDumpFrames {
		d.text = append(d.text, stackFrame{File: found[1], Line: number, Func: found[3]})
	}
	d.note(d.came)
}

// lines writes the stack for a reader, outermost first; none if nothing came.
// code is the source that the runner calls codeFile; the runner's own folder
// on this host is hostDir.
func (d *stackDump) lines(code, codeFile, hostDir string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	stack := d.frames
	if stack == nil {
		stack = slices.Clone(d.text)
		slices.Reverse(stack)
		stack = withoutRunner(stack, hostDir)
	}
	return stackLines(stack, code, codeFile)
}
