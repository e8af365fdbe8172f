package host

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNamespacesThatCannotBeMade say so in the kernel's words.
func TestNamespacesThatCannotBeMade(t *testing.T) {
	p := ProbeNamespaces(Host{UIDs: IDMap{Root: -2}, GIDs: IDMap{Root: -2}})
	if p.Stopped != StepMake || p.Err == nil || strings.Contains(p.Err.Error(), "/proc/self/exe") {
		t.Errorf("stopped at %q: %v", p.Stopped, p.Err)
	}
}

// TestContainerThatCoversItsProc is found by its child. It starts itself as such a container,
// where namespaces can be made.
func TestContainerThatCoversItsProc(t *testing.T) {
	const nested = "TOOLCELL_TEST_NESTED"
	if os.Getenv(nested) == "" {
		h, err := Probe(65534, 65534)
		if err != nil {
			t.Fatal(err)
		}
		if p := ProbeNamespaces(h); p.Stopped != "" {
			t.Logf("not here: %s: %v", p.Stopped, p.Err)
			return
		}
		c := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), nested+"=1")
		c.Dir = "/"
		c.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(h.UIDs.Root), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(h.GIDs.Root), Size: 1}},
			Credential:  &syscall.Credential{NoSetGroups: true},
		}
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	if err := unix.Mount("tmpfs", "/proc/sys", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	only := IDMap{Root: 0, User: -1}
	if p := ProbeNamespaces(Host{UIDs: only, GIDs: only}); p.Stopped != StepProc || !errors.Is(p.Err, unix.EPERM) {
		t.Errorf("stopped at %q: %v", p.Stopped, p.Err)
	}
	h, err := Probe(65534, 65534)
	if err != nil || h.UIDs != only || h.GIDs != only {
		t.Errorf("users %+v, groups %+v, %v", h.UIDs, h.GIDs, err)
	}
	checkCgroup(t, h.Cgroup, "no cgroup can be made here (")
}
