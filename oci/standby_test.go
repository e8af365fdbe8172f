package oci

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/fork"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// TestTemplateIsRenewed: all forks of one template have the same seed of hash.
func TestTemplateIsRenewed(t *testing.T) {
	l := forksHere(t, nil, map[string]string{})
	l.r.KeepStandbys(PoolOptions{Start: StartFork, Max: 2, Idle: time.Minute, Renew: 4})
	seen := map[string]bool{}
	for end := time.Now().Add(2 * time.Minute); len(seen) < 3 && time.Now().Before(end); {
		out, _ := l.run(t, "print("+isFork+", hash('x'))")
		if !strings.HasPrefix(out, "True ") {
			t.Fatalf("no fork: %q", out)
		}
		seen[out] = true
	}
	if len(seen) < 3 {
		t.Error("the template is always the same")
	}
}

// TestFaultOfTemplateIsNotSeen kills the template in every state: each run
// still succeeds, and later ones are forks again.
//
//test:long
func TestFaultOfTemplateIsNotSeen(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	l := forksHere(t, nil, map[string]string{})
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGSEGV, unix.SIGSTOP} {
		tmpl := l.r.pool.State().Template
		if tmpl == nil {
			t.Fatal("there is no template")
		}
		process := tmpl.(*fork.Template)
		victim := process.PID()
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(victim) + "/task/" + strconv.Itoa(victim) + "/children"); err == nil {
			if f := strings.Fields(string(b)); len(f) > 0 {
				victim, _ = strconv.Atoi(f[0])
			}
		}
		if err := unix.Kill(victim, sig); err != nil {
			t.Fatal(err)
		}
		if sig != unix.SIGSTOP {
			// A run that begins while the kernel is at it is killed too.
			<-process.Ended()
		}
		for range 3 {
			l.wants(t, "print('good')", "good\n")
		}
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if out, _ := l.run(t, "print("+isFork+")"); out == "True\n" {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("after signal %v there are no forks any more: %v", sig, l.r.pool.Notes())
			}
		}
	}
}

// TestPoolLetsGo: after a time without use nothing of ours runs.
//
//test:long
func TestPoolLetsGo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	l := newLab(t, PoolOptions{Start: StartAuto, Max: 3, Idle: 5 * time.Second}, nil, map[string]string{})
	l.run(t, "pass")
	l.wait(t)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if s := l.r.pool.State(); s.Ready == 0 && s.Template == nil && s.Making == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("something still waits")
		}
	}
	l.r.containers.WaitForJobs()
	l.wants(t, "print('again')", "again\n")
}

// TestForksLeaveNothing looks at the state folder and at the cgroups.
func TestForksLeaveNothing(t *testing.T) {
	l := forksHere(t, nil, map[string]string{})
	for range 5 {
		l.run(t, "import subprocess; subprocess.Popen(['sleep', '100'])")
	}
	var ids []string
	dir, err := l.r.containers.StateDir()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	l.r.pool.Close()
	l.r.containers.WaitForJobs()
	entries, err = os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), "proc-") { // what covers files of /proc stays
			t.Errorf("left in the state folder: %s, of %v", e.Name(), ids)
		}
	}
	if h, err := l.r.containers.Host(); err == nil && h.Cgroup.Driver == host.CgroupFS {
		c, err := container.Convert(spec.New(l.p.Process, h, "x"), h, "x")
		if err != nil || slices.Contains(ids, c.Cgroups.Path) {
			t.Error(err)
		}
	}
}

// TestCloseDoesNotWaitForAStart: a module may take its time to be imported.
func TestCloseDoesNotWaitForAStart(t *testing.T) {
	l := newLab(t, PoolOptions{Start: StartAuto, Max: 1}, []string{"slow"}, map[string]string{"slow.py": "import time\ntime.sleep(50)\n"})
	l.run(t, "pass")
	time.Sleep(100 * time.Millisecond)
	start := time.Now()
	l.r.pool.Close()
	l.r.containers.Stop()
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}
