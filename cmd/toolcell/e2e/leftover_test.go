package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci"
)

// TestNothingIsLeftBehind runs code fifty times, some in a process of their own
// and the rest in one server, with a run that is stopped and a server that is
// killed among them, and looks for what stays on the host.
func TestNothingIsLeftBehind(t *testing.T) {
	inEveryWay(t, onHosts, func(t *testing.T, h *host) {
		t.Parallel()
		image, seen := env{"TOOLCELL_IMAGE": "host"}, h.seeSandboxes(t)
		alone, together := 10, 40
		if h.cred != nil {
			alone, together = 3, 20 // the first host shows what many runs leave
		}
		for i := range alone {
			if out, errs, code := h.run(t, image, "exec", "-c", fmt.Sprint(i)); code != 0 || out != fmt.Sprintln(i) {
				t.Errorf("run %d: exit code %d, %q\n%s", i, code, out, errs)
			}
		}
		raw, mark := h.serveRaw(t, image), marker()
		raw.sendCode(t, sleeper(mark))
		waitFor(t, "the code to start", func() bool { return alive(mark) })
		if err := syscall.Kill(raw.pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = raw.stop()
		c := h.serve(t, image)
		before := 0
		for i := range together {
			c.python(t, fmt.Sprintf("print(%d)", i)).want(t, fmt.Sprint(i))
			if i == 4 {
				before = descriptors(t, c.cmd.Process.Pid)
			}
		}
		// A sandbox that waits has several, and there may be one more of them.
		waitFor(t, "the server to close what its runs had open", func() bool {
			return descriptors(t, c.cmd.Process.Pid) <= before+12
		})
		if r := c.call(t, map[string]any{"code": "while True: pass", "timeout": 1}); r.status() != "timeout" {
			t.Errorf("an endless run: %s", r.text)
		}
		if err := c.Close(); err != nil {
			t.Errorf("closing the server: %v", err)
		}
		ids := seen()
		// Where there is no cgroup a fork leaves nothing, not even a note.
		if len(ids) < 10 && (h.start != oci.StartFork || h.name == "root") || len(ids) == 0 {
			t.Fatalf("saw %d sandboxes only", len(ids))
		}
		var left []string
		// systemd forgets a scope a moment after its last process is gone.
		for end := time.Now().Add(slow(patience)); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if left = h.traces(t, ids); len(left) == 0 {
				return
			}
		}
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	})
}

// descriptors counts what a process has open.
func descriptors(t *testing.T, pid int) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// seeSandboxes notes the name of every sandbox that runs on the host from now
// on, until it is asked for them.
func (h *host) seeSandboxes(t *testing.T) (seen func() (ids []string)) {
	ctx, stop := context.WithCancel(t.Context())
	ended, ids := make(chan struct{}), map[string]bool{}
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
			folders, _ := filepath.Glob(filepath.Join(h.home, "state", "run", "instance-*", "*", "state.json"))
			for _, f := range folders {
				ids[filepath.Base(filepath.Dir(f))] = true
			}
		}
	}()
	return func() []string {
		stop()
		<-ended
		return slices.Sorted(maps.Keys(ids))
	}
}

// instances lists the folders of processes that have sandboxes.
func (h *host) instances() []string {
	folders, _ := filepath.Glob(filepath.Join(h.home, "state", "run", "instance-*"))
	return folders
}

// traces finds what there is of sandboxes on the host: their cgroups, scopes,
// mounts and folders.
func (h *host) traces(t *testing.T, ids []string) (found []string) {
	t.Helper()
	look := func(what, where string) {
		if slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(where, id) }) {
			found = append(found, what+" "+where)
		}
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			look("cgroup", path)
		}
		return nil // others' cgroups vanish while we look
	})
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		look("mount", line)
		if strings.Contains(line, h.home+"/") {
			found = append(found, "mount "+line)
		}
	}
	found = append(found, h.instances()...)
	// Users that the tests make have no manager that could be asked.
	dir := fmt.Sprintf("/run/user/%d", os.Getuid())
	if _, err := os.Stat(dir + "/bus"); err == nil && h.cred == nil {
		c := exec.Command("systemctl", "--user", "list-units", "--all", "--plain", "--no-legend")
		c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir)
		out, err := c.Output()
		if err != nil {
			t.Fatalf("asking systemd for its units: %v", err)
		}
		for unit := range strings.Lines(string(out)) {
			look("unit", unit)
		}
	}
	return found
}
