package output

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestTeeGetsWhatWasKept, and then everything until another takes its place.
func TestTeeGetsWhatWasKept(t *testing.T) {
	w := &Pipes{Stdout: newCapture(8), Stderr: newCapture(8)}
	write := func(stdout, stderr string) {
		t.Helper()
		_, err1 := io.WriteString(w.Stdout, stdout)
		_, err2 := io.WriteString(w.Stderr, stderr)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
	}
	var first, second, stderr strings.Builder
	write("0123456789", "")
	w.Tee(&first, &stderr)
	write("a long line\n", "e")
	w.Tee(nil, nil)
	write("b", "f")
	w.Tee(&second, nil)
	write("c", "g")
	for _, tt := range []struct{ name, got, want string }{
		{"the first", first.String(), "01456789a long line\n"},
		{"the second", second.String(), "01line\nbc"},
		{"of stderr", stderr.String(), "e"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s got %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

// ends fails the test, and closes the pipes, if do does not end.
func ends(t *testing.T, p *Pipes, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		go p.Close() // ends a read or write that waits
		t.Fatal(what + " does not end")
	}
}

// A slowReader takes what is passed on, but the first of it only when it may.
type slowReader struct {
	begun, may chan struct{}
	once       sync.Once
	mu         sync.Mutex
	got        strings.Builder
}

func (s *slowReader) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // nothing was kept before
	}
	s.once.Do(func() {
		close(s.begun)
		<-s.may
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

func (s *slowReader) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

// TestAllThatWasWrittenIsReadInTheEnd, also what the pipe still holds while a reader
// is slow.
func TestAllThatWasWrittenIsReadInTheEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		end    func(*Pipes)
		exited bool // no process has the pipes
		want   string
	}{
		"the sandbox has reported its end": {func(p *Pipes) { p.Drain(true) }, false, "first second"},
		"its processes have ended":         {func(p *Pipes) { p.Drain(false) }, true, "first second"},
		"a run of a session has ended":     {(*Pipes).Settle, false, "first second"},
		"output so far":                    {(*Pipes).Flush, false, "first second"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Open(1000)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			to := &slowReader{begun: make(chan struct{}), may: make(chan struct{})}
			p.Tee(to, nil)
			write := func(text string) {
				if _, err := p.ChildOut.WriteString(text); err != nil {
					t.Fatal(err)
				}
			}
			write("first ")
			ends(t, p, "waiting for the first", func() { <-to.begun })
			write("second")
			if tt.exited {
				p.ChildOut.Close()
				p.ChildErr.Close()
			}
			time.AfterFunc(20*time.Millisecond, func() { close(to.may) })
			ends(t, p, "the end", func() { tt.end(p) })
			if got := to.text(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestOutputIsPassedOnWhileCodeRuns, in each run of a session, and after Flush.
func TestOutputIsPassedOnWhileCodeRuns(t *testing.T) {
	p, err := Open(1000)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, next := range []func(){func() {}, p.Flush, func() { p.Settle(); p.Listen() }, p.Flush} {
		ends(t, p, "going on", next)
		for _, s := range []struct {
			from io.Writer
			to   *capture
		}{{p.ChildOut, p.Stdout}, {p.ChildErr, p.Stderr}} {
			heard := make(chan string, 10)
			s.to.passOn(tellWriter(func(text string) { heard <- text }))
			<-heard // what was kept
			if _, err := io.WriteString(s.from, "text"); err != nil {
				t.Fatal(err)
			}
			ends(t, p, "passing on", func() {
				if got := <-heard; got != "text" {
					t.Errorf("heard %q", got)
				}
			})
		}
	}
}

// A tellWriter is called with everything that is written.
type tellWriter func(text string)

func (w tellWriter) Write(p []byte) (int, error) {
	w(string(p))
	return len(p), nil
}

// TestSettleTakesNoMoreThanThereWas, since a process may write without end.
func TestSettleTakesNoMoreThanThereWas(t *testing.T) {
	p, err := Open(1000)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Settle()
	left := 10
	p.Tee(tellWriter(func(text string) {
		if left--; text != "" && left > 0 {
			_, _ = p.ChildOut.WriteString("more")
		}
	}), nil)
	if _, err := p.ChildOut.WriteString("before\n"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before", "before|more", "before|moremore"} {
		p.Settle()
		if stdout, _, _ := p.Lines(); strings.Join(stdout, "|") != want {
			t.Errorf("got %q, want %q", stdout, want)
		}
	}
}

// TestCodeIsNotStoppedByAReaderThatFails: its output is read, though nobody gets it.
func TestCodeIsNotStoppedByAReaderThatFails(t *testing.T) {
	p, err := Open(1000)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Tee(tellWriter(func(text string) {
		if text != "" {
			panic("a bug")
		}
	}), nil)
	ends(t, p, "writing", func() {
		// more than a pipe holds
		if _, err := p.ChildOut.Write(make([]byte, 256<<10)); err != nil {
			t.Error(err)
		}
	})
}

// TestClosedPipesHaveNothingToRead: a sandbox may be closed while a run ends.
func TestClosedPipesHaveNothingToRead(t *testing.T) {
	p, err := Open(1000)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	for what, do := range map[string]func(){"Settle": p.Settle, "Drain": func() { p.Drain(true) }} {
		ends(t, p, what, do)
	}
	if stdout, stderr, cut := p.Lines(); stdout != nil || stderr != nil || cut {
		t.Errorf("got %q, %q, %v", stdout, stderr, cut)
	}
}
