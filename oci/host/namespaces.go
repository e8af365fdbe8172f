package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// A NamespaceProbe reports how far a child process came in entering a sandbox.
type NamespaceProbe struct {
	Stopped string // the step that failed, "" if none did
	Err     error  // of that step
}

// The steps, in order.
const (
	StepMake  = "make"  // the namespaces themselves
	StepAdmin = "admin" // use a capability in them
	StepMount = "mount" // change a mount
	StepProc  = "proc"  // mount a /proc
)

// probeEnv makes a child process run the trial, report and exit.
const probeEnv = "_TOOLCELL_PROBE"

// init turns this process into such a child if it was started as one. It is here rather
// than in main, so that every binary or test that probes the host has it.
func init() {
	if len(os.Args) == 2 && os.Args[1] == "probe" && os.Getenv(probeEnv) != "" {
		probeInside()
		os.Exit(0)
	}
}

// ProbeNamespaces starts a child in the namespaces of a sandbox. To create them is not
// enough: if AppArmor restricts user namespaces, the child has no capabilities in its own,
// and in a container it may not be allowed to mount.
func ProbeNamespaces(h Host) NamespaceProbe {
	c := exec.Command("/proc/self/exe", "probe")
	c.Env = []string{probeEnv + "=1"}
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(h.UIDs.Root), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(h.GIDs.Root), Size: 1}},
		// As mapped, real root is not root inside and would lose the capability.
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	out, err := c.Output()
	if err != nil {
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			err = errno
		}
		return NamespaceProbe{StepMake, err}
	}
	var step string
	var errno int
	if n, _ := fmt.Sscanf(string(out), "stopped at %s %d", &step, &errno); n == 2 {
		return NamespaceProbe{step, syscall.Errno(errno)}
	}
	return NamespaceProbe{}
}

// probeInside is the child's part. Its mount namespace belongs to a new user namespace, so
// nothing is visible outside.
func probeInside() {
	for _, s := range []struct {
		step string
		do   func() error
	}{
		{StepAdmin, func() error { return unix.Sethostname([]byte("toolcell")) }},
		{StepMount, func() error { return unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, "") }},
		{StepProc, func() error {
			return unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}},
	} {
		var errno syscall.Errno
		if err := s.do(); errors.As(err, &errno) {
			fmt.Fprintf(os.Stdout, "stopped at %s %d\n", s.step, int(errno))
			return
		}
	}
}
