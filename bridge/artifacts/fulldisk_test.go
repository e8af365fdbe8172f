package artifacts

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDiskIsSaidOnce, not for each file, whose copies would all fail.
func TestFullDiskIsSaidOnce(t *testing.T) {
	const disk = "ARTIFACTS_TEST_DISK"
	if dir := os.Getenv(disk); dir != "" { // in a namespace of its own
		collectOnSmallDisk(t, dir)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), disk+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || strings.Contains(string(out), "no small disk") {
		t.Skipf("needs a user namespace to mount a small disk in: %v %s", err, out)
	}
	want := "files [a], notes 2: /workspace/out/b could not be kept: the disk with " + dir + ", where files of runs are kept, is full"
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v: %s\nwant %q", err, out, want)
	}
}

func collectOnSmallDisk(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=256k,mode=700"); err != nil {
		t.Skip("no small disk:", err)
	}
	out, w := emptyWorkspace(t)
	written(t, out, "a", "b", "c", "d")
	for _, name := range []string{"b", "c", "d"} {
		if err := os.Truncate(out+"/"+name, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	left := endOfRun(t, New(Options{Dir: dir}), w)
	t.Logf("files %v, notes %d: %s", listed(left), len(left.Notes), strings.Join(left.Notes, "\n"))
}
