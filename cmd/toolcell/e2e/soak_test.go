//go:build soak

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// soakClients is how many calls are in the air at once.
const soakClients = 4

// soakProcesses is how many there may be between runs: the upstream server and
// its guard, and two each for the template and the sandboxes that wait: as many
// as were under way, with those of cancelled runs that were still ending.
const soakProcesses = 2 + 2*(1+2*soakClients)

// A soakRun is one kind of run and how many of each thousand it is.
type soakRun struct {
	share   int
	args    map[string]any
	cancel  bool   // a moment after it was sent
	status  string // any, if it is cancelled
	contain string
}

var soakRuns = []soakRun{
	{200, map[string]any{"code": "await mcp_odd.pid()", "servers": []string{"odd"}}, false, "success", ""},
	{100, map[string]any{"code": "import sys; print('bye'); sys.exit(3)"}, false, "error", "exit: 3"},
	{100, map[string]any{"code": "1/0"}, false, "error", "ZeroDivisionError"},
	{40, map[string]any{"code": "await mcp_odd.fail()", "servers": []string{"odd"}}, false, "error", "disk is on fire"},
	{40, map[string]any{"code": "print('x' * 1_000_000)"}, false, "success", "xxx"},
	{30, map[string]any{"code": "import os; os.kill(os.getpid(), 9)"}, false, "error", "signal 9"},
	{30, map[string]any{"code": "import os, time\nif os.fork() == 0: time.sleep(60)\nprint('left')"}, false, "success", "left"},
	{30, map[string]any{"code": "import time; time.sleep(60)"}, true, "", ""},
	{10, map[string]any{"code": "await mcp_odd.hang()", "servers": []string{"odd"}}, true, "", ""},
	{10, map[string]any{"code": "import time\nx = b'x' * (200 << 20)\ntime.sleep(20)"}, false, "memory_limit", "64 MiB"},
	{5, map[string]any{"code": "while True: pass", "timeout": 1}, false, "timeout", "1 s"},
	{5, map[string]any{"code": ""}, false, "validation_error", "empty"},
	{400, map[string]any{"code": "print(6 * 7)"}, false, "success", "42"},
}

// soakKind gives the kind of the n-th run: always the same ones in a thousand,
// well mixed.
func soakKind(n int) soakRun {
	at := n * 617 % 1000 // 617 and 1000 have no common factor
	for _, k := range soakRuns {
		if at -= k.share; at < 0 {
			return k
		}
	}
	panic("the shares must add up to 1000")
}

// usage is what a server holds. None of it may grow with the number of runs.
type usage struct{ rss, descriptors, threads, processes, mounts, cgroups, files int }

var usageNames = []string{"RSS KiB", "descriptors", "threads", "processes", "mounts", "cgroups", "files"}

func (u usage) list() []int {
	return []int{u.rss, u.descriptors, u.threads, u.processes, u.mounts, u.cgroups, u.files}
}

// tolerance is how much more of each there may be at the end: memory and
// threads depend on how runs happened to meet, as does how many sandboxes wait,
// and other programs on this host may have cgroups and mounts of their own.
func (u usage) tolerance() []int { return []int{u.rss/4 + 4<<10, 20, 6, 6, 4, 20, 4} }

func measure(t *testing.T, pid int, home string) usage {
	t.Helper()
	at := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(at + "/status")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile(at + "/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	u := usage{
		rss: statusNumber(status, "VmRSS"), threads: statusNumber(status, "Threads"), descriptors: descriptors(t, pid),
		processes: len(children(pid)), mounts: bytes.Count(mounts, []byte("\n")) + bytes.Count(theirs, []byte("\n")),
	}
	cgroups, _ := filepath.Glob("/sys/fs/cgroup/*/toolcell/*/cgroup.procs")
	own, _ := filepath.Glob("/sys/fs/cgroup/toolcell/*/cgroup.procs")
	for _, dir := range slices.Concat(cgroups, own) {
		sandboxes, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", "cgroup.procs"))
		u.cgroups += 1 + len(sandboxes)
	}
	_ = filepath.WalkDir(filepath.Join(home, "state"), func(string, fs.DirEntry, error) error { u.files++; return nil })
	return u
}

// TestSoak makes as many runs as TOOLCELL_SOAK says through one server, on the
// kind of host that TOOLCELL_SOAK_HOST names or else the first, and looks
// whether the server holds more at the end than near the start.
func TestSoak(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("TOOLCELL_SOAK"))
	if err != nil {
		t.Fatal("set TOOLCELL_SOAK to a number of runs, such as 10000: make soak")
	}
	config := fakeConfig(t, nil)
	all, err := hosts()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		if only := os.Getenv("TOOLCELL_SOAK_HOST"); only == h.name || only == "" && h == all[0] {
			t.Run(h.name, func(t *testing.T) { soak(t, h, n, config) })
		}
	}
}

func soak(t *testing.T, h *host, n int, config string) {
	c := h.serve(t, env{"TOOLCELL_IMAGE": "host", "TOOLCELL_SERVERS_CONFIG": config, "TOOLCELL_MEMORY": "64m", "TOOLCELL_FILES_MAX_SIZE": "10m", "TOOLCELL_LOG_LEVEL": "ERROR"})
	const samples = 50
	rows := make([]usage, 0, samples)
	t.Logf("%8s %9s %s", "runs", "runs/s", strings.Join(usageNames, "  "))
	for i := range samples {
		from, to := n*i/samples, n*(i+1)/samples
		start := time.Now()
		soakSome(t, c, from, to)
		perSecond := float64(to-from) / time.Since(start).Seconds()
		// Sandboxes of cancelled runs may still be on their way out.
		waitFor(t, "the sandboxes to be gone", func() bool { return len(children(c.cmd.Process.Pid)) <= soakProcesses })
		rows = append(rows, measure(t, c.cmd.Process.Pid, h.home))
		if i%5 == 4 || i == 0 {
			t.Logf("%8d %9.1f %v", to, perSecond, rows[i].list())
		}
		if t.Failed() {
			return
		}
	}
	first, last := floor(rows[1:samples/10]), floor(rows[samples-samples/10:])
	for i, was := range first.list() {
		if is := last.list()[i]; is > was+first.tolerance()[i] {
			t.Errorf("%s grew from %d to %d", usageNames[i], was, is)
		}
	}
}

// floor gives the least of each: what was there for a moment is no leak.
func floor(rows []usage) usage {
	u := rows[0]
	for _, r := range rows[1:] {
		u = usage{
			min(u.rss, r.rss), min(u.descriptors, r.descriptors), min(u.threads, r.threads), min(u.processes, r.processes),
			min(u.mounts, r.mounts), min(u.cgroups, r.cgroups), min(u.files, r.files),
		}
	}
	return u
}

// soakSome makes the runs with the given numbers, a few at once.
func soakSome(t *testing.T, c *client, from, to int) {
	var next atomic.Int64
	next.Store(int64(from))
	var workers sync.WaitGroup
	for range soakClients {
		workers.Go(func() {
			for i := int(next.Add(1) - 1); i < to; i = int(next.Add(1) - 1) {
				if err := soakOnce(t.Context(), c, soakKind(i)); err != nil {
					t.Errorf("run %d: %v", i, err)
				}
			}
		})
	}
	workers.Wait()
}

func soakOnce(ctx context.Context, c *client, k soakRun) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if k.cancel {
		time.AfterFunc(rand.N(200*time.Millisecond), cancel)
	}
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "run_python", Arguments: k.args})
	if k.cancel {
		return nil
	}
	if err != nil {
		return err
	}
	r := reply{text: res.Content[0].(*mcp.TextContent).Text}
	r.fields, _ = res.StructuredContent.(map[string]any)
	if r.status() != k.status || !strings.Contains(r.text, k.contain) {
		return fmt.Errorf("%v: got %.500s, want %s and %q", k.args["code"], r.text, k.status, k.contain)
	}
	return nil
}
