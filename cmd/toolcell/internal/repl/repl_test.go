package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
)

// errExit is the error of a result that ends the program with a code.
type errExit int

func (e errExit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// A replied prompt gets its results from a table instead of a sandbox.
type replied struct {
	t        *testing.T
	in       *os.File
	results  map[string]run.Result // by code; if missing, a success whose session continues
	codes    []string              // that ran
	sessions []string              // in which they ran
	notes    []string              // that were shown
	err      *os.File
}

func newReplied(t *testing.T, typed string) *replied {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte(typed), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err1 := os.Open(filepath.Join(dir, "in"))
	out, err2 := os.Create(filepath.Join(dir, "err"))
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); out.Close() })
	return &replied{t: t, in: in, err: out, results: map[string]run.Result{}}
}

func (p *replied) run(ctx context.Context, first string) error {
	p.t.Helper()
	return Run(ctx, Options{
		Streams: &console.Streams{In: p.in, Out: p.err, Err: p.err},
		First:   first,
		Request: run.Request{Stdout: p.err, Stderr: p.err},
		Run: func(_ context.Context, r run.Request) *run.Result {
			p.codes, p.sessions = append(p.codes, r.Code), append(p.sessions, r.Session)
			result, ok := p.results[r.Code]
			if !ok {
				result = run.Result{Status: run.StatusSuccess, Session: "continued", Notes: []string{"of every run"}}
			}
			return &result
		},
		Show: func(r *run.Result) { p.notes = append(p.notes, r.Notes...) },
		ExitError: func(r *run.Result) error {
			if r.ExitCode == nil {
				return nil
			}
			return errExit(*r.ExitCode)
		},
	})
}

func (p *replied) printed() string {
	p.t.Helper()
	text, err := os.ReadFile(p.err.Name())
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

func ended(status string, code int) run.Result {
	return run.Result{Status: status, ExitCode: &code, Session: sessionEnded, Notes: []string{"the session was ended"}}
}

// TestBlocksRunInOneSession: what the command line gives first, then what is
// typed; a program sees no marks, and a note that holds for all of it once.
func TestBlocksRunInOneSession(t *testing.T) {
	p := newReplied(t, "x = 1\nif x:\n    x\n\nf(1,\n2)\nif x: # no end")
	if err := p.run(t.Context(), "first\n"); err != nil {
		t.Error(err)
	}
	if want := []string{"first\n", "x = 1\n", "if x:\n    x\n", "f(1,\n2)\n", "if x: # no end\n"}; !slices.Equal(p.codes, want) {
		t.Errorf("ran %q, want %q", p.codes, want)
	}
	if distinct := slices.Compact(p.sessions); len(distinct) != 1 || distinct[0] == "" {
		t.Errorf("in sessions %q", distinct)
	}
	if want := []string{"of every run"}; !slices.Equal(p.notes, want) {
		t.Errorf("notes %q, want %q", p.notes, want)
	}
	if text := p.printed(); text != "" {
		t.Errorf("printed %q", text)
	}
}

func TestCodeCanExit(t *testing.T) {
	p := newReplied(t, "exit(7)\nnever\n")
	p.results["exit(7)\n"] = ended(run.StatusError, 7)
	if err := p.run(t.Context(), ""); !errors.Is(err, errExit(7)) || len(p.codes) != 1 {
		t.Errorf("got %v, after %q", err, p.codes)
	}
}

// TestPromptOutlivesItsSession: a run that is stopped takes the session along, and
// what is typed next begins another.
func TestPromptOutlivesItsSession(t *testing.T) {
	p := newReplied(t, "x = 1\nloop()\ny = 1\n")
	p.results["loop()\n"] = ended(run.StatusTimeout, 137)
	if err := p.run(t.Context(), ""); err != nil {
		t.Errorf("the last block went well, and yet: %v", err)
	}
	if len(p.sessions) != 3 || p.sessions[0] != p.sessions[1] || p.sessions[1] == p.sessions[2] {
		t.Errorf("in sessions %q", p.sessions)
	}
	if text := p.printed(); strings.Count(text, "the session was ended") != 1 {
		t.Errorf("printed %q", text)
	}
	if slices.Contains(p.notes, "the session was ended") {
		t.Error("the end of the session is said twice")
	}
}

// TestProgramGetsTheLastExitCode, as of a shell script.
func TestProgramGetsTheLastExitCode(t *testing.T) {
	p := newReplied(t, "1/0\n")
	code := 1
	p.results["1/0\n"] = run.Result{Status: run.StatusError, ExitCode: &code, Session: "new"}
	if err := p.run(t.Context(), ""); !errors.Is(err, errExit(1)) {
		t.Errorf("got %v", err)
	}
}

func TestCancelledPromptReturnsTheCause(t *testing.T) {
	p := newReplied(t, "x = 1\ny = 1\n")
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := p.run(ctx, "first\n"); !errors.Is(err, cause) || len(p.codes) != 1 {
		t.Errorf("got %v, after %q", err, p.codes)
	}
}

func TestInputMustBeText(t *testing.T) {
	p := newReplied(t, "x = 1\n\xff\xfe\n")
	var exit *console.ExitError
	if err := p.run(t.Context(), ""); !errors.As(err, &exit) || exit.Code != console.ExitUsage {
		t.Errorf("got %v", err)
	}
}

// TestPersonSeesMarks at a terminal that cannot edit lines, and a line of its own
// for each.
func TestPersonSeesMarks(t *testing.T) {
	t.Setenv("TERM", "dumb")
	ours, theirs := terminaltest.Open(t, 80)
	signals := &console.Signals{}
	done := make(chan error, 1)
	go func() {
		done <- Run(t.Context(), Options{
			Streams:  &console.Streams{In: theirs, Out: theirs, Err: theirs, Signals: signals},
			Greeting: func(context.Context) string { return "Python in a sandbox of an image" },
			Request:  run.Request{Stdout: theirs, Stderr: theirs},
			Run: func(_ context.Context, r run.Request) *run.Result {
				fmt.Fprint(r.Stdout, "no end")
				return &run.Result{Status: run.StatusSuccess, Session: "new"}
			},
			Show:      func(*run.Result) {},
			ExitError: func(*run.Result) error { return nil },
		})
	}()
	if _, err := ours.WriteString("if x:\n  y\n\n\x04"); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	theirs.Close()
	shown, _ := io.ReadAll(ours) // which fails once the other end is closed
	text := strings.ReplaceAll(string(shown), "\r\n", "\n")
	for want, times := range map[string]int{"Python in a sandbox of an image.": 1, ">>> ": 2, "... ": 2, "no end\n>>> ": 1} {
		if strings.Count(text, want) != times {
			t.Errorf("the terminal does not have %q %d times: %q", want, times, text)
		}
	}
}
