package oci

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/toolcell/toolcell/oci/ocitest"

	"github.com/toolcell/toolcell/oci/host"
)

// TestPid1 tries from inside what pid 1 has to be for the code: there, deaf
// and opaque.
func TestPid1(t *testing.T) {
	r := openRuntime(t)
	for name, tt := range map[string]struct{ script, want string }{
		"is not the program":    {"test $$ != 1 && cat /proc/1/comm", "toolcell\n"},
		"does not hear signals": {"for s in INT TERM HUP CHLD USR1 STOP KILL SEGV; do kill -$s 1; done 2>/dev/null; sleep 0.1; echo on", "on\n"},
		"is opaque": {
			"for f in mem environ maps smaps auxv stack syscall personality; do head -c 1 /proc/1/$f 2>/dev/null && echo $f; done; ls /proc/1/fd /proc/1/root/ /proc/1/cwd/ 2>/dev/null; readlink /proc/1/exe; : 2>/dev/null >/proc/1/mem && echo writable", "",
		},
		"gives the program no variable of ours": {"env | grep -c TOOLCELL", "0\n"},
		"collects zombies": {
			"for i in 1 2 3 4 5; do (sleep 0.05 &); done; sleep 0.3; grep -l '^State:.Z' /proc/[0-9]*/status", "",
		},
		"ends what the program leaves": {"setsid sleep 60 & echo started", "started\n"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			if got, _ := sh(t.Context(), t, r, Process{}, tt.script); got != tt.want {
				t.Errorf("%s\n got %q\nwant %q", tt.script, got, tt.want)
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestLandlock shows the second lock by what nothing else refuses: a process
// may write to its own files in /proc.
func TestLandlock(t *testing.T) {
	if host.LandlockVersion() < 2 {
		t.Skip("this kernel has no Landlock of version 2 or later (CONFIG_SECURITY_LANDLOCK, lsm=)")
	}
	got, _ := sh(t.Context(), t, openRuntime(t), Process{},
		"echo x 2>/dev/null >/proc/self/comm || echo refused; echo y >/dev/null && echo z >/tmp/a && mkdir d && mv /tmp/a d 2>/dev/null; mv d/a d/b; cat d/b; touch /dev/shm/s && echo fine")
	if got != "refused\nz\nfine\n" {
		t.Errorf("got %q", got)
	}
}

// TestSandboxEndsWithItsServer: no sweep runs here, and no signal is sent.
func TestSandboxEndsWithItsServer(t *testing.T) {
	ocitest.NeedNamespaces(t)
	marker := "31536002." + strconv.Itoa(os.Getpid())
	helper := startHelper(t, filepath.Join(t.TempDir(), "run"), ocitest.HostRoot(t).Dir, marker)
	waitFor(t, "the sandbox to start", func() bool { return alive(t, marker) })
	if err := helper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	_ = helper.Wait()
	waitFor(t, "the sandbox to end", func() bool { return !alive(t, marker) })
	if took := time.Since(killed); took > 20*time.Second {
		t.Errorf("the sandbox lived on for %s", took)
	}
}
