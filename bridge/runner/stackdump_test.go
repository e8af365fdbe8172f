package runner

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// dumped is what faulthandler writes of a stack.
const dumped = `Current thread 0x1 (most recent call first):
  File "/usr/lib/python3.13/selectors.py", line 9 in select
  File "DIR/calls.py", line 8 in wait
  File "<run_python>", line 2 in f
  File "<run_python>", line 1 in <module>
  File "/usr/lib/python3.13/asyncio/events.py", line 7 in _run
  File "/usr/lib/python3.13/asyncio/runners.py", line 6 in run
  File "DIR/run.py", line 5 in run
  File "DIR/__main__.py", line 4 in <module>
  File "<string>", line 3 in start
`

// TestRunnerIsNotInTheStackOfTheCode, nor what starts the runner, nor the event loop that calls
// the code.
func TestRunnerIsNotInTheStackOfTheCode(t *testing.T) {
	const hostDir = "/home/me/.cache/toolcell/runner-1"
	want := []string{"line 1, in <module>: f()", "line 2, in f: sleep(60)", "[1 frame inside selectors]"}
	for _, dir := range []string{Dir, hostDir} {
		d, whole := newStackDump(), strings.ReplaceAll(dumped, "DIR", dir)
		head, err := d.readText(strings.NewReader(whole[4:]+"\x00\x00\x00\x07"), [4]byte([]byte(whole)))
		if err != nil || head != [4]byte{3: 7} {
			t.Errorf("%s: the next frame begins with %v, %v", dir, head, err)
		}
		for range 2 {
			if got := d.lines("f()\nsleep(60)", "<run_python>", hostDir); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", dir, got, want)
			}
		}
	}
}

// TestStackIsAwaitedNoLongerThanNeedBe.
func TestStackIsAwaitedNoLongerThanNeedBe(t *testing.T) {
	line := func(d *stackDump) { d.addLine(`  File "x.py", line 1 in f`) }
	frame := func(d *stackDump) {
		if err := d.addFrames(json.RawMessage(`[{"line":1}]`)); err != nil {
			t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		comes  []func(d *stackDump)
		waited time.Duration
	}{
		"nothing":                   {nil, dumpTimeout},
		"a text":                    {[]func(d *stackDump){line}, frameTimeout},
		"more of it":                {[]func(d *stackDump){line, line}, frameTimeout},
		"a frame":                   {[]func(d *stackDump){frame}, 0},
		"a text and a frame":        {[]func(d *stackDump){line, frame}, 0},
		"the end of the code":       {[]func(d *stackDump){(*stackDump).finish}, 0},
		"a frame, then the end":     {[]func(d *stackDump){frame, (*stackDump).finish}, 0},
		"a heading without a frame": {[]func(d *stackDump){func(d *stackDump) { d.addLine("Current thread:") }}, dumpTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, begun := newStackDump(), time.Now()
				d.ask(t.Context(), func() bool {
					for _, come := range c.comes {
						come(d)
					}
					return true
				})
				if got := time.Since(begun); got != c.waited {
					t.Errorf("waited %s, want %s", got, c.waited)
				}
			})
		})
	}
}

// TestStackThatIsNoneIsRefused: its items are no frames.
func TestStackThatIsNoneIsRefused(t *testing.T) {
	for _, raw := range []string{`[1]`, `[{"line":"x"}]`, `[{"file":1}]`, `[[]]`, `[{"line":1.5}]`, `{}`, ``} {
		if err := newStackDump().addFrames(json.RawMessage(raw)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestTextOfAStackMayBreakOff: the runner was killed. That is no violation of the protocol.
func TestTextOfAStackMayBreakOff(t *testing.T) {
	for text, want := range map[string]error{"": io.EOF, "ck\n": io.EOF, "ck\n\x00\x00": io.ErrUnexpectedEOF} {
		_, err := newStackDump().readText(strings.NewReader(text), [4]byte([]byte("Stac")))
		if !errors.Is(err, want) || errors.Is(err, ErrProtocol) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}
