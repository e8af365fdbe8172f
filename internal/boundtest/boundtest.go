// Package boundtest measures parsers of untrusted input: what comes from a sandbox, a
// server, a registry, an index, an archive or a lock.
//
// Each parser has a row in rows.go, which is also the table in docs/security.md, and an
// entry in the TestBounds of its package:
//
//	boundtest.Run(t, boundtest.Parser{Row: "code with its header", Shapes: boundtest.TOML("", ""), Parse: parse})
//
// Each shape is fed to it in a process of its own, whose memory is limited. Processor
// time may grow no more than the input does, memory stays within the row's number, a
// reader ends soon after its context, and what has no context takes 100 ms at most. Only
// what takes twice that fails, because no test may depend on the speed of a machine.
package boundtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// A Parser is what reads untrusted input. It has one of Parse, ParseContext and Read.
type Parser struct {
	Row    string // its name in rows.go
	Shapes []Shape
	Worst  string // the shape of which all that a row allows is measured for its memory; the first if it is empty
	Before func() // makes what has to be there, which is not measured; may be nil

	// Parse takes all bytes at once and cannot be cancelled.
	Parse func(text []byte) error
	// ParseContext takes all bytes at once and obeys its context.
	ParseContext func(ctx context.Context, text []byte) error
	// Read takes a stream and obeys its context.
	Read func(ctx context.Context, r io.Reader) error
}

// A Shape is a kind of input. Make returns about n bytes of it, and not more.
type Shape struct {
	Name string
	Make func(n int) []byte
}

const (
	enough     = 20 * time.Millisecond  // of processor time for the smaller input
	mostAtOnce = 100 * time.Millisecond // for a call that cannot be cancelled, and for ending after its context
	mostGrowth = 15                     // times, for ten times the input
	tolerance  = 2                      // times what a row says: two processors differ by more than slowness finds
	tries      = 3
	largest    = 16 << 20 // bytes of an input that is measured, even if more are allowed
	smallHeap  = 1 << 20  // is not collected
)

// childEnv tells a process that it is one that measures, and what.
const childEnv = "TOOLCELL_BOUND"

// A report is what such a process found.
type report struct {
	Small, Large, Whole size          // Whole is the slowest of the largest inputs that the row allows
	Ended               time.Duration // after the context
	Peak                int           // bytes
	Over                int           // bytes that it takes beyond the room that it has
}

type size struct {
	Bytes int
	Took  time.Duration // of processor time, on a machine of usual speed
	Error string
}

// Run measures parsers.
func Run(t *testing.T, parsers ...Parser) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector makes all of it slower and larger; make test-all runs this without it")
	}
	for _, p := range parsers {
		row, ok := find(p.Row)
		if !ok {
			t.Errorf("%q has no row in internal/boundtest/rows.go", p.Row)
			continue
		}
		if (p.Parse == nil) != row.Cancels || p.Read != nil && p.ParseContext != nil {
			t.Errorf("%q: a parser that obeys a context has Read or ParseContext and says so in its row, and any other has Parse", p.Row)
			continue
		}
		if p.Worst != "" && !slices.ContainsFunc(p.Shapes, func(s Shape) bool { return s.Name == p.Worst }) {
			t.Errorf("%q has no shape %q, which it says is the worst", p.Row, p.Worst)
		}
		run(t, p, row)
	}
}

// Dir returns a directory for the files of parsers that read or write some. It is in
// memory where it can be: what a disk takes, and how that grows with the number of files,
// says nothing about the parser.
func Dir(t *testing.T) string {
	t.Helper()
	const shm, room = "/dev/shm", 512 << 20
	var fs unix.Statfs_t
	if err := unix.Statfs(shm, &fs); err != nil || fs.Type != unix.TMPFS_MAGIC || fs.Bavail*uint64(fs.Bsize) < room {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(shm, "toolcell-bounds-*")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func run(t *testing.T, p Parser, row Row) {
	for _, s := range p.Shapes {
		id := p.Row + "/" + s.Name
		if os.Getenv(childEnv) == "" {
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				check(t, p, row, id)
			})
			continue
		}
		answer(t, p, row, s, id)
	}
}

// answer measures in the process that was started for this shape.
func answer(t *testing.T, p Parser, row Row, s Shape, id string) {
	if os.Getenv(childEnv) != id {
		return
	}
	text, err := json.Marshal(measure(p, row, s))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\n%s%s\n", reportMark, text)
	t.SkipNow() // so that it cleans up, and measures nothing else
}

const reportMark = "TOOLCELL_BOUND_REPORT "

// alone is locked while a shape is measured again, so that nothing of ours disturbs it.
var alone sync.RWMutex

// check measures one shape in another process. What breaks a rule has to break it again
// in others: a busy machine may make any one of them slow, or its collector late.
func check(t *testing.T, p Parser, row Row, id string) {
	alone.RLock()
	left := attempt(t, p, row, id)
	alone.RUnlock()
	for i := 1; i < tries && len(left) > 0; i++ {
		alone.Lock()
		again := attempt(t, p, row, id)
		alone.Unlock()
		maps.DeleteFunc(left, func(rule, _ string) bool { return again[rule] == "" })
	}
	for _, what := range left {
		t.Errorf("broken: %s", what)
	}
}

// attempt measures one shape in another process and returns what breaks which rule.
func attempt(t *testing.T, p Parser, row Row, id string) (broken map[string]string) {
	r, err := child(t, id)
	if err != nil {
		return map[string]string{"end": "its process: " + err.Error()}
	}
	t.Logf("%d bytes %v, %d bytes %v, all that is allowed %d bytes %v; ends after %v; peak %d KiB; %q", r.Small.Bytes, r.Small.Took, r.Large.Bytes, r.Large.Took, r.Whole.Bytes, r.Whole.Took, r.Ended, r.Peak>>10, r.Large.Error)
	broken = map[string]string{}
	if most := tolerance * mostGrowth * max(r.Small.Took, enough); r.Large.Took > most {
		broken["growth"] = fmt.Sprintf("%d bytes take %v, and %d take %v (%q): more than %d times as long", r.Small.Bytes, r.Small.Took, r.Large.Bytes, r.Large.Took, r.Large.Error, mostGrowth)
	}
	if p.Parse != nil && r.Whole.Took > tolerance*row.whole() {
		broken["time"] = fmt.Sprintf("%d bytes are allowed and take %v, which nothing can cancel; the most is %v (%q)", r.Whole.Bytes, r.Whole.Took, row.whole(), r.Whole.Error)
	}
	if row.Cancels && r.Ended > tolerance*mostAtOnce {
		broken["cancel"] = fmt.Sprintf("it ends %v after its context; the most is %v", r.Ended, mostAtOnce)
	}
	if r.Peak > row.peak()+smallHeap {
		broken["memory"] = fmt.Sprintf("it takes %d KiB; its row says %d MiB", r.Peak>>10, row.peak()>>20)
	}
	if r.Over > 0 {
		broken["room"] = fmt.Sprintf("it takes %d KiB more than %d times its input", r.Over>>10, row.Room)
	}
	return broken
}

// child runs the process that measures one shape.
func child(t *testing.T, id string) (r report, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // most of it may be others'; its own processor time is limited
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), childEnv+"="+id)
	out, err := cmd.CombinedOutput()
	_, text, ok := strings.Cut(string(out), reportMark)
	if ok {
		err = errors.Join(err, json.NewDecoder(strings.NewReader(text)).Decode(&r))
	}
	if err != nil || !ok {
		return r, fmt.Errorf("%w\n%.3000s", cmp.Or(err, errors.New("it has no report")), strings.Map(printable, string(out)))
	}
	return r, nil
}

// printable keeps bytes of inputs out of logs, which grep would take for binary files.
func printable(r rune) rune {
	if r == '\n' || r == '\t' || r != utf8.RuneError && unicode.IsPrint(r) {
		return r
	}
	return '?'
}
