package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// answers receives n answers and gives the text of each by its id.
func (c *rawClient) answers(t *testing.T, n int) map[int]string {
	t.Helper()
	texts := map[int]string{}
	for range n {
		var a struct {
			ID     int
			Result struct{ Content []struct{ Text string } }
			Error  json.RawMessage
		}
		line := c.receive(t)
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatalf("answer %s: %v", line, err)
		}
		if _, twice := texts[a.ID]; twice {
			t.Errorf("two answers to %d", a.ID)
		}
		texts[a.ID] = string(a.Error)
		if len(a.Result.Content) > 0 {
			texts[a.ID], _, _ = strings.Cut(a.Result.Content[0].Text, "\nnote: ")
		}
	}
	return texts
}

// TestManyCallsAtOnce sends far more calls than may go on at once: they wait,
// take turns, none is lost, and each gets its own answer.
func TestManyCallsAtOnce(t *testing.T) {
	const most = 16
	calls := 200
	if slow(1) > 1 {
		calls = 60
	}
	h := firstHost(t)
	c := h.serveRaw(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_STATE_DIR": filepath.Join(h.home, "many")})
	for i := range calls {
		// The clock is that of the host: it tells which runs went on at once.
		c.sendCode(t, fmt.Sprintf("import time; begin = time.monotonic(); time.sleep(0.05); print(%d, begin, time.monotonic())", 1+i))
	}
	texts := c.answers(t, calls)
	type event struct {
		at   float64
		runs int
	}
	var events []event
	for id := 1; id <= calls; id++ {
		var n int
		var begin, end float64
		if _, err := fmt.Sscan(texts[id], &n, &begin, &end); err != nil || n != id {
			t.Fatalf("answer %d: %s", id, texts[id])
		}
		events = append(events, event{begin, 1}, event{end, -1})
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	now, highest := 0, 0
	for _, e := range events {
		now += e.runs
		highest = max(highest, now)
	}
	if highest > most || highest < 2 {
		t.Errorf("%d runs at once, want at most %d and more than one", highest, most)
	}
	// Afterwards there are at most the template, those that stand by, and those
	// that are being removed.
	waitFor(t, "the sandboxes to be removed", func() bool {
		left, _ := filepath.Glob(filepath.Join(h.home, "many", "run", "instance-*", "????????????????"))
		return len(left) <= 2*most
	})
}

// TestWaitingCalls fills every place, so that further calls have to wait.
func TestWaitingCalls(t *testing.T) {
	t.Parallel()
	const most = 16
	h := firstHost(t)
	c, fill := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_MAX_TIMEOUT": "2h"}), marker()
	ends := make(chan reply, most)
	for i := range most {
		go func() {
			ends <- c.call(t, map[string]any{"code": fmt.Sprintf("import subprocess; subprocess.run(['sleep', '%s%d'])", fill, i), "timeout": 7200})
		}()
	}
	waitFor(t, "all places to be taken", func() bool {
		for i := range most {
			if !alive(fmt.Sprintf("%s%d", fill, i)) {
				return false
			}
		}
		return true
	})

	cancelled, mark := make(chan error, 1), marker()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": sleeper(mark)}})
		cancelled <- err
	}()
	waited := make(chan reply, 1)
	go func() {
		waited <- c.call(t, map[string]any{"code": "print('at last')", "timeout": int(slow(8*time.Second) / time.Second)})
	}()
	time.Sleep(slow(8500 * time.Millisecond)) // longer than the timeout of the one that waits
	cancel()
	if err := <-cancelled; err == nil {
		t.Error("the cancelled call gave a result")
	}
	select {
	case r := <-waited:
		t.Errorf("a call did not wait: %s", r.text)
	default:
	}
	// Now end what runs, from outside: each is a sleep in a sandbox.
	for _, pid := range children(c.cmd.Process.Pid) {
		if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(command), "sleep\x00"+fill) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for range most {
		if r := <-ends; r.isError {
			t.Errorf("one that had a place: %s", r.text)
		}
	}
	(<-waited).want(t, "at last")
	if alive(mark) {
		t.Error("the call that was cancelled while it waited was started")
	}
}

// TestDisconnectDuringARun ends a client in every way while its code runs.
func TestDisconnectDuringARun(t *testing.T) {
	onHosts(t, func(t *testing.T, h *host) {
		t.Parallel()
		for name, tt := range map[string]struct {
			code  string // after the marker process was started
			leave func(c *rawClient) error
		}{
			"stdin closed":                       {"time.sleep(60)", func(c *rawClient) error { return c.in.Close() }},
			"both closed":                        {"time.sleep(60)", func(c *rawClient) error { c.out.close(); return c.in.Close() }},
			"stdout closed, a result comes":      {"pass", func(c *rawClient) error { c.out.close(); return nil }},
			"stdout closed, a big result comes":  {"print('x' * 900_000)", func(c *rawClient) error { c.out.close(); return nil }},
			"nothing read, then stdin is closed": {"print('x' * 900_000)", func(c *rawClient) error { time.Sleep(700 * time.Millisecond); return c.in.Close() }},
		} {
			t.Run(name, func(t *testing.T) {
				c, mark := h.serveRaw(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_OUTPUT_BYTES": "1m"}), marker()
				c.sendCode(t, "import subprocess, time\nsubprocess.Popen(['sleep', '"+mark+"'])\ntime.sleep(0.5)\n"+tt.code)
				waitFor(t, "the code to start", func() bool { return alive(mark) })
				if err := tt.leave(c); err != nil {
					t.Fatal(err)
				}
				c.ends(t)
				gone(t, mark)
				if left := sandboxIDs(h); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			})
		}
	})
}

// TestStalledClient sends calls and reads no answer for a long time.
func TestStalledClient(t *testing.T) {
	t.Parallel()
	const calls, size = 400, 1 << 20 // answers for more than a pipe holds
	c := firstHost(t).serveRaw(t, env{"TOOLCELL_IMAGE": "host"})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range calls {
			// Refused without a run, with an answer that is longer than a pipe holds.
			c.sendCode(t, "0"+strings.Repeat("#", size), strings.Repeat("s", 1<<10))
		}
	}()
	var peak int
	for range 20 {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.pid))
		if err != nil {
			t.Fatal(err)
		}
		peak = statusNumber(status, "VmHWM")
		time.Sleep(100 * time.Millisecond)
	}
	select {
	case <-sent:
		t.Error("the server kept reading although its answers were not read")
	default:
	}
	if peak > 400<<10 {
		t.Errorf("the server took %d MiB", peak>>10)
	}
	texts := c.answers(t, calls)
	<-sent
	if ids := slices.Collect(func(yield func(int) bool) {
		for id, text := range texts {
			if !strings.Contains(text, "no server") && !yield(id) {
				return
			}
		}
	}); len(ids) > 0 {
		t.Errorf("answer %d: %.300s", ids[0], texts[ids[0]])
	}
}

// TestLinesThatAreNoMessages come before a call that has to work.
func TestLinesThatAreNoMessages(t *testing.T) {
	c := firstHost(t).serveRaw(t, env{"TOOLCELL_IMAGE": "host"})
	lines := []string{"garbage", "\xff\xfe\x00", `{"jsonrpc":`, "[]]", "null", `{"jsonrpc":"1.0","id":3,"method":"ping"}`, strings.Repeat("x", 40<<20)}
	go func() {
		for _, line := range lines {
			c.send(t, line)
		}
	}()
	for range lines {
		if answer := c.receive(t); !strings.Contains(answer, `"error":{"code":-32`) {
			t.Errorf("answer %s", answer)
		}
	}
	c.sendCode(t, "print('on')")
	if got := c.answers(t, 1)[1]; got != "on" {
		t.Errorf("the call after them: %s", got)
	}
}
