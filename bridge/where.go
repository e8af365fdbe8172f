package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// When the time of a run is up its process is told so, by a signal, and says
// where it is, in two ways:
//
//	text      written by faulthandler from within the signal's handler, also if
//	          Python's own code does not get its turn: in a busy call of C code
//	a frame   written by the runner, if Python does: it knows of awaiting tasks
//
// Both are as hostile as all else from a sandbox. They come after the deadline
// only; before it, they break the talk.

// How long a run that is to be stopped is waited for.
const (
	wherePatience = 250 * time.Millisecond // until it says anything
	frameTime     = 100 * time.Millisecond // from there until the frame
)

// Bounds on what it may say.
const (
	maxWhereText   = 16 << 10  // bytes
	maxWhereFrame  = 512 << 10 // bytes
	maxWhereFrames = 400       // of which the ends are shown
	maxShownLines  = 12
	maxLineText    = 160
)

// A place is where a frame of the stack is.
type place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Func string `json:"func"`
	Text string `json:"text"` // of the line, if it is known
	Task string `json:"task"` // that it begins, if several wait
}

// whereabouts are what a run has said of where it was.
type whereabouts struct {
	deadline time.Time
	timer    *time.Timer   // until then
	came     chan struct{} // has room for one: something was said
	text     []place       // innermost first, as faulthandler says it
	frame    []place       // outermost first
	told     bool          // the frame has come
}

// limit gives a context that ends when the time of the run is up and its
// process has had its moment to say where it is.
func (t *talk) limit(ctx context.Context, timeout time.Duration, urge chan<- struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	t.where = whereabouts{deadline: time.Now().Add(timeout), came: make(chan struct{}, 1)}
	t.where.timer = time.AfterFunc(timeout, func() {
		t.askWhere(ctx, urge)
		cancel(errTimeout)
	})
	return ctx, func() {
		t.where.timer.Stop()
		cancel(nil)
	}
}

// inTime ends the time limit, and reports whether it was kept: nothing was
// asked, and so nothing comes in the way of the next run.
func (t *talk) inTime() bool { return t.where.timer.Stop() }

// askWhere urges the process to say where it is, and waits until it has.
func (t *talk) askWhere(ctx context.Context, urge chan<- struct{}) {
	select {
	case urge <- struct{}{}:
	default:
		return // nobody listens: it has not started, or has ended
	}
	patience := time.NewTimer(wherePatience)
	defer patience.Stop()
	for said := false; ; {
		select {
		case <-t.where.came:
			if t.toldWhere() {
				return
			}
			if !said {
				said = true
				patience.Reset(frameTime)
			}
		case <-patience.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// toldWhere reports whether there is nothing more to come.
func (t *talk) toldWhere() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.where.told || t.done != nil
}

// timeIsUp reports whether the run may be asked where it is.
func (t *talk) timeIsUp() bool {
	return !t.where.deadline.IsZero() && !time.Now().Before(t.where.deadline)
}

func (t *talk) hearWhere() {
	select {
	case t.where.came <- struct{}{}:
	default:
	}
}

// noteWhere takes in the frame.
func (t *talk) noteWhere(raw json.RawMessage) error {
	var all []place
	if len(raw) > maxWhereFrame || json.Unmarshal(raw, &all) != nil || len(all) > maxWhereFrames {
		return fmt.Errorf("%w: a stack that is none", errFrame)
	}
	t.mu.Lock()
	t.where.frame, t.where.told = all, true
	t.mu.Unlock()
	t.hearWhere()
	return nil
}

// isText reports whether a frame's head is none, but the beginning of
// faulthandler's text: a length that begins with a letter is out of bounds.
func isText(head [4]byte) bool { return head[0] >= 'A' && head[0] <= 'z' }

// readText takes in faulthandler's text and gives the head of the frame that
// comes behind it.
func (t *talk) readText(r io.Reader, head [4]byte) ([4]byte, error) {
	line, b := string(head[:]), make([]byte, 1)
	for range maxWhereText {
		if _, err := io.ReadFull(r, b); err != nil {
			return head, err
		}
		switch {
		case b[0] == '\n':
			t.noteLine(line)
			line = ""
		case b[0] <= maxFrame>>24 && line == "":
			head[0] = b[0]
			_, err := io.ReadFull(r, head[1:])
			return head, err
		default:
			line += string(b)
		}
	}
	return head, fmt.Errorf("%w: a stack of more than %d bytes", errFrame, maxWhereText)
}

var faultLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^  File "([^"]{1,500})", line (\d{1,9}) in (.{1,200})$`)
})

func (t *talk) noteLine(line string) {
	found := faultLine().FindStringSubmatch(line)
	if found == nil {
		return // a heading
	}
	number, _ := strconv.Atoi(found[2]) // nine digits always fit
	t.mu.Lock()
	if len(t.where.text) < maxWhereFrames {
		t.where.text = append(t.where.text, place{File: found[1], Line: number, Func: found[3]})
	}
	t.mu.Unlock()
	t.hearWhere()
}

// stack gives the lines that say where the run was, outermost first.
func (t *talk) stack() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	places := t.where.frame
	if !t.where.told {
		places = slices.Clone(t.where.text)
		slices.Reverse(places)
		places = t.withoutRunner(places)
	}
	code := strings.Split(t.code, "\n")
	var lines []string
	inside, count := "", 0 // a library, and how many frames of it follow each other
	flush := func() {
		if count > 0 {
			lines = append(lines, fmt.Sprintf("[%s inside %s]", text.Plural(count, "frame"), inside))
		}
		count = 0
	}
	for _, p := range places {
		lib := p.library()
		if lib != inside || p.Task != "" {
			flush()
		}
		if p.Task != "" {
			lines = append(lines, "task "+text.OneLine(p.Task, 80)+":")
		}
		if inside = lib; lib != "" {
			count++
			continue
		}
		if p.Text == "" && p.File == t.codeFile && p.Line >= 1 && p.Line <= len(code) {
			p.Text = code[p.Line-1]
		}
		lines = append(lines, p.String())
	}
	flush()
	if n := len(lines); n > maxShownLines {
		rest := lines[n-maxShownLines/2:]
		lines = append(lines[:maxShownLines/2:maxShownLines/2], fmt.Sprintf("[%d lines left out]", n-maxShownLines))
		lines = append(lines, rest...)
	}
	return lines
}

// withoutRunner takes from a stack what the runner, and what has started it, are
// in, and the event loop between the runner and the code.
func (t *talk) withoutRunner(places []place) []place {
	ours := func(p place) bool {
		dir := filepath.Dir(p.File)
		return dir == runner.Dir || dir == t.s.o.RunnerDir
	}
	if first := slices.IndexFunc(places, ours); first >= 0 {
		places = places[first:]
	}
	places = slices.DeleteFunc(places, ours)
	if own := slices.IndexFunc(places, func(p place) bool { return p.library() == "" }); own > 0 {
		places = places[own:]
	}
	return places
}

// String writes a place of the code's own: `line 3, in f: time.sleep(60)`.
func (p place) String() string {
	s := fmt.Sprintf("line %d, in %s", p.Line, text.OneLine(p.Func, 80))
	if !strings.HasPrefix(p.File, "<run_python") {
		s = strings.Trim(text.OneLine(p.File, 120), "<>") + " " + s
	}
	if text := text.OneLine(p.Text, maxLineText); text != "" {
		s += ": " + text
	}
	return s
}

// library gives the name of the library that a file belongs to, "" for what is
// the code's own.
func (p place) library() string {
	if strings.HasPrefix(p.File, "<frozen") {
		return "Python"
	}
	if !strings.HasPrefix(p.File, "/") && strings.Contains(p.File, "/") {
		return libraryName(p.File) // what Cython has compiled names its source so
	}
	for _, folder := range []string{"/site-packages/", "/dist-packages/"} {
		if _, rest, ok := strings.Cut(p.File, folder); ok {
			return libraryName(rest)
		}
	}
	if found := standardLibrary.FindStringSubmatch(p.File); found != nil {
		return libraryName(found[1])
	}
	return ""
}

var standardLibrary = regexp.MustCompile(`^/.*/python3\.\d+/(.+)$`)

func libraryName(file string) string {
	first, _, _ := strings.Cut(file, "/")
	return text.OneLine(strings.TrimSuffix(first, path.Ext(first)), 60)
}
