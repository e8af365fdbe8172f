package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// spinning is code that works in a thread and in a process with the mark, whatever it does next.
const spinning = `
import subprocess, sys, threading
p = subprocess.Popen([sys.executable, "-uc", "print()\nwhile True: pass", %q], stdout=subprocess.PIPE)
p.stdout.readline() # it runs
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
`

const createsIssue = `print((await mcp_github.create_issue(title="t")).title)`

// TestKilledServerLeavesNoFrozenRun, though nothing in it can notice that.
func TestKilledServerLeavesNoFrozenRun(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		e := asks(t, "[servers.github]\nask = 'writes'", nil)
		c, mark := h.serveRaw(t, e), marker()
		c.sendCode(t, fmt.Sprintf(spinning, mark)+createsIssue, "github")
		if line := c.receive(t); !strings.Contains(line, `"status":"approval_needed"`) || !alive(mark) {
			t.Fatalf("it does not wait: %s", line)
		}
		ids := sandboxIDs(h)
		started := c.kill9(t)
		waitFor(t, "the end of all processes", func() bool { return !slices.ContainsFunc(started, proc.alive) })
		gone(t, mark)
		_ = c.stop()
		wantSwept(t, h, ids)
	})
}

// TestFrozenRunStandsStill: its processes and its clock, but not those of other programs. The
// user takes longer to answer than the code has time, and than one of its processes has: what
// is left of the code's time would be too short for that one if it had stood still too.
func TestFrozenRunStandsStill(t *testing.T) {
	t.Parallel()
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		e := asks(t, "[servers.github]\nask = 'writes'", nil)
		c, mark := h.serve(t, e), marker()
		limit := seconds(10)
		code := fmt.Sprintf(spinning, mark) + fmt.Sprintf("late = subprocess.Popen(['timeout', '%d', 'sleep', '1000'])\n", limit) +
			"try: " + createsIssue + "\nexcept Exception as e: print(e)\nprint(late.wait())"
		r := c.call(t, map[string]any{"code": code, "servers": []string{"github"}, "timeout": limit})
		id := approvalID(t, r)
		first, _ := sandboxProcesses(c.cmd.Process.Pid, mark)
		if first == 0 {
			t.Fatal("there is no process with the mark")
		}
		before := ticks(t, first)
		time.Sleep(time.Duration(limit+1) * time.Second) // the time to answer is what is tested
		// A process takes its signal to stop when it gets the processor the next time.
		if used := ticks(t, first) - before; used > 5 {
			t.Errorf("it used %d ticks of processor time", used)
		}
		if out, errs, code := h.run(t, e, "approvals", "deny", id); code != 0 {
			t.Fatal(out, errs)
		}
		c.call(t, map[string]any{"code": "", "session": id}).want(t, "denied by the user\n124")
	})
}

// ticks returns the processor time that all processes below one have used, in ticks of
// the clock.
func ticks(t *testing.T, above int) (sum int) {
	t.Helper()
	below := children(above)
	if len(below) < 2 {
		t.Fatalf("below %d are %v", above, below)
	}
	for _, pid := range below {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		for _, field := range strings.Fields(rest)[11:13] { // utime and stime (proc_pid_stat(5))
			n, _ := strconv.Atoi(field)
			sum += n
		}
	}
	return sum
}
