package oci

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/limits"
	"github.com/toolcell/toolcell/oci/ocitest"

	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// openRuntime opens a runtime whose code has ids 65534. It skips the test
// where the host forbids user namespaces, which doctor would say too.
func openRuntime(t *testing.T) *Runtime {
	t.Helper()
	ocitest.NeedNamespaces(t)
	r, err := Open(filepath.Join(t.TempDir(), "run"), 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// sh runs a shell script in a sandbox and returns what it wrote.
func sh(ctx context.Context, t *testing.T, r *Runtime, p Process, script string) (string, container.Exit) {
	t.Helper()
	out, exit, _ := shWithUsage(ctx, t, r, p, script)
	return out, exit
}

func shWithUsage(ctx context.Context, t *testing.T, r *Runtime, p Process, script string) (string, container.Exit, limits.Usage) {
	t.Helper()
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p.Root = ocitest.HostRoot(t)
	p.Args = []string{"/bin/sh", "-c", script}
	p.Env = append(p.Env, "PATH=/usr/bin:/bin")
	p.Stdout, p.Stderr = w, w
	text := make(chan string)
	go func() {
		b, _ := io.ReadAll(out)
		text <- string(b)
	}()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	sb, err := r.Start(ctx, p)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	exit, err := sb.Wait()
	if err := errors.Join(err, sb.Close()); err != nil {
		t.Fatalf("Wait and Close: %v", err)
	}
	return <-text, exit, sb.Usage()
}

func TestSandboxHasNoCapabilities(t *testing.T) {
	out, _ := sh(t.Context(), t, openRuntime(t), Process{}, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")
	for _, want := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if !strings.Contains(out, want+":\t0000000000000000\n") {
			t.Errorf("%s is not empty:\n%s", want, out)
		}
	}
	for _, want := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in:\n%s", want, out)
		}
	}
}

func TestSandboxAttempts(t *testing.T) {
	r := openRuntime(t)
	t.Setenv("TOOLCELL_TEST_SECRET", "hunter2")
	for name, tt := range map[string]struct{ script, want string }{
		"id":                     {"id -u; id -g", "65534\n65534\n"},
		"env":                    {"env | grep -c TOOLCELL_TEST_SECRET", "0\n"},
		"only its own processes": {"test $(ls -d /proc/[0-9]* | wc -l) -le 5 && echo few", "few\n"},
		"host name":              {"cat /proc/sys/kernel/hostname", "toolcell\n"},
		"no network":             {"grep -vc -e lo: -e '|' /proc/net/dev", "0\n"},
		"working directory":      {"pwd; touch a && echo written", "/workspace\nwritten\n"},
		"tmp":                    {"touch /tmp/a && echo written", "written\n"},
		"tmp is noexec":          {"cp /bin/true /tmp/t; /tmp/t 2>/dev/null || echo refused", "refused\n"},
		"workspace is noexec":    {"cp /bin/true t; ./t 2>/dev/null || echo refused", "refused\n"},
		"root is read-only":      {"touch /a /etc/a /run/a /run/toolcell/a 2>/dev/null || echo refused", "refused\n"},
		"usr is read-only":       {"touch /usr/a 2>&1 | grep -c Read-only", "1\n"},
		"root cannot be remounted": {
			"mount -o remount,rw / 2>/dev/null || echo refused", "refused\n",
		},
		"no new user namespace":   {"unshare -U true 2>/dev/null || echo refused", "refused\n"},
		"sysctl is read-only":     {"echo 1 2>/dev/null >/proc/sys/kernel/panic || echo refused", "refused\n"},
		"core_pattern":            {"echo '|/x' 2>/dev/null >/proc/sys/kernel/core_pattern || echo refused", "refused\n"},
		"kcore is masked":         {"head -c 1 /proc/kcore 2>/dev/null | wc -c", "0\n"},
		"setuid does nothing":     {"su root -c id 2>/dev/null </dev/null || echo refused", "refused\n"},
		"no descriptor is leaked": {"ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 "}, // 3 is ls's own
		"stdin is empty":          {"cat", ""},
		"no core files":           {"ulimit -c", "0\n"},
		"open files are limited":  {"test $(ulimit -n) -le 4096 && echo yes", "yes\n"},
		"flags of the root":       {"grep ' / / \\| /.* / ' /proc/self/mountinfo | head -1 | grep -o 'ro,nosuid,nodev'", "ro,nosuid,nodev\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := sh(t.Context(), t, r, Process{}, tt.script); got != tt.want {
				t.Errorf("%s\n got %q\nwant %q", tt.script, got, tt.want)
			}
		})
	}
}

func TestSandboxExit(t *testing.T) {
	r := openRuntime(t)
	for _, tt := range []struct {
		script string
		want   container.Exit
	}{
		{"exit 0", container.Exit{}},
		{"exit 7", container.Exit{Code: 7}},
		{"kill -9 $$", container.Exit{Code: 128 + 9}},
		{"kill -SEGV $$", container.Exit{Code: 128 + 11}},
	} {
		if _, got := sh(t.Context(), t, r, Process{}, tt.script); got != tt.want {
			t.Errorf("%s: exit = %+v, want %+v", tt.script, got, tt.want)
		}
	}
}

func TestSandboxesShareNothing(t *testing.T) {
	r := openRuntime(t)
	sh(t.Context(), t, r, Process{}, "echo secret | tee /tmp/a /workspace/a /dev/shm/a")
	if got, _ := sh(t.Context(), t, r, Process{}, "cat /tmp/a /workspace/a /dev/shm/a 2>/dev/null"); got != "" {
		t.Errorf("the next sandbox reads %q", got)
	}
}

// alive reports whether any process of this host has the marker in its
// command line.
func alive(t *testing.T, marker string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), marker) && !strings.Contains(f, "/"+strconv.Itoa(os.Getpid())+"/") {
			return true
		}
	}
	return false
}

func TestCancelKillsEveryProcess(t *testing.T) {
	r := openRuntime(t)
	marker := "31536000." + strconv.Itoa(os.Getpid())
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for !alive(t, marker) && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	_, exit := sh(ctx, t, r, Process{}, "setsid sleep "+marker+" & trap '' TERM INT HUP; sleep "+marker)
	if exit.Signal != unix.SIGKILL {
		t.Errorf("exit = %+v, want SIGKILL", exit)
	}
	if alive(t, marker) {
		t.Error("a process of the sandbox is still there")
	}
}

// TestMemoryLimit holds with a cgroup and without: then the runtime watches.
func TestMemoryLimit(t *testing.T) {
	r := openRuntime(t)
	l := spec.Limits{Memory: 64 << 20}
	for name, script := range map[string]string{
		"one process":    "python3 -c 'import time; x = b\"x\" * (200 << 20); time.sleep(20)'",
		"many processes": "for i in 1 2 3 4 5 6 7 8; do head -c 30m /dev/zero | tail -c 20m | sleep 3 & done; wait",
		"files":          "for i in 1 2 3; do head -c 40m /dev/zero >/workspace/$i; done; head -c 40m /dev/zero >/dev/shm/a; sleep 3",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			out, exit := sh(t.Context(), t, r, Process{Limits: l}, script)
			if !exit.OOM || time.Since(start) > time.Minute {
				t.Errorf("exit = %+v after %s, want OOM\n%s", exit, time.Since(start), out)
			}
		})
	}
	if out, exit := sh(t.Context(), t, r, Process{Limits: l}, "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3 & done; wait; echo fine"); exit.OOM || out != "fine\n" {
		t.Errorf("many small processes: %+v, %q", exit, out)
	}
}

// TestASandboxSaysWhatItTook, where a cgroup counts that and is still there at the end.
func TestASandboxSaysWhatItTook(t *testing.T) {
	r := openRuntime(t)
	_, _, u := shWithUsage(t.Context(), t, r, Process{Limits: spec.Limits{Memory: 256 << 20}}, "head -c 60m /dev/zero | tail -c 50m >/dev/null; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
	h, err := r.containers.Host()
	if err != nil {
		t.Fatal(err)
	}
	counted := h.Cgroup.Driver == host.CgroupFS
	if counted && u.CPU < 10*time.Millisecond || u.CPU < 0 || counted && h.Cgroup.Memory && u.Peak < 40<<20 || u.Peak < 0 || u.Peak > 256<<20 {
		t.Errorf("with %+v it took %+v", h.Cgroup, u)
	}
}

func TestPIDLimit(t *testing.T) {
	r := openRuntime(t)
	got, _ := sh(t.Context(), t, r, Process{Limits: spec.Limits{PIDs: 16}},
		"i=0; while [ $i -lt 40 ]; do sleep 5 2>/dev/null & i=$((i+1)); done 2>/dev/null; ls -d /proc/[0-9]* | wc -l")
	if n, err := strconv.Atoi(strings.TrimSpace(got)); err == nil && n > 20 {
		t.Errorf("%d processes with a limit of 16", n)
	}
}

func TestRuntimeSweepsWhatAKilledServerLeft(t *testing.T) {
	ocitest.NeedNamespaces(t)
	dir := filepath.Join(t.TempDir(), "run")
	marker := "31536001." + strconv.Itoa(os.Getpid())
	// A helper process starts a sandbox and is killed, with no chance to
	// clean up.
	helper := startHelper(t, dir, ocitest.HostRoot(t).Dir, marker)
	waitFor(t, "the sandbox to start", func() bool { return alive(t, marker) })
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = helper.Wait()
	r, err := Open(dir, 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if alive(t, marker) {
		t.Error("the sandbox of the killed server still runs")
	}
	left, _ := filepath.Glob(filepath.Join(dir, "instance-*"))
	if len(left) != 1 {
		t.Errorf("state folders = %q, want ours alone", left)
	}
}

// waitFor polls until ok or half a minute has gone.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
