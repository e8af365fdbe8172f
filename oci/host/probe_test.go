package host

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user that no host has.
const nobody = 1999999999

func TestChildrenAndThreadsOfThisProcess(t *testing.T) {
	cmd := exec.Command("cat") // it waits for input
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	// Threads may end in the middle, and a kernel may have been built without lists of children.
	children, err := ChildrenOf(os.Getpid())
	if !slices.Contains(children, cmd.Process.Pid) && err == nil {
		t.Errorf("children = %v, want %d", children, cmd.Process.Pid)
	}
	first := fmt.Sprintf("/proc/%d/task/%d", os.Getpid(), os.Getpid())
	if threads, err := ThreadsOf(os.Getpid()); err != nil || !slices.Contains(threads, first) {
		t.Errorf("threads = %v, %v; want %s", threads, err, first)
	}
	if children, err := ChildrenOf(nobody); err == nil {
		t.Errorf("children of no process: %v", children)
	}
}

func TestKernelFeatures(t *testing.T) {
	if err := unix.MountSetattr(-1, "", 0, &unix.MountAttr{}); err == nil && !changesTrees() { // changes nothing
		t.Error("mount_setattr(2) works, and is not found")
	}
	if changesTrees() && !rootGuard() {
		t.Error("mount_setattr(2) is found and the guard is not: both came with Linux 5.12")
	}
	if ThisSystem().Exists("proc/sys/kernel/seccomp/actions_avail") {
		if err := SeccompError(); err != nil {
			t.Errorf("filters cannot be loaded: %v", err)
		}
	}
	if v := LandlockVersion(); v < 0 {
		t.Errorf("version %d of Landlock", v)
	}
}

func TestUserName(t *testing.T) {
	for uid, want := range map[int]string{0: "root", nobody: strconv.Itoa(nobody)} {
		if got := UserName(uid); got != want {
			t.Errorf("%d: %q, want %q", uid, got, want)
		}
	}
}

func TestLimitsEndAtTheHardOnes(t *testing.T) {
	h := Host{HardLimits: map[int]uint64{unix.RLIMIT_NOFILE: 100}}
	for _, c := range []struct {
		resource   int
		want, have uint64
	}{
		{unix.RLIMIT_NOFILE, 200, 100},
		{unix.RLIMIT_NOFILE, 50, 50},
		{unix.RLIMIT_NPROC, 200, 200},
	} {
		if got := h.LimitOf(c.resource, c.want); got != c.have {
			t.Errorf("%d of %d: %d, want %d", c.want, c.resource, got, c.have)
		}
	}
}

// TestProbeDescribesThisProcess, as the kernel does in /proc.
func TestProbeDescribesThisProcess(t *testing.T) {
	h, err := Probe(65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	if h.EUID != os.Geteuid() || h.Exe == "" {
		t.Errorf("user %d, program %q", h.EUID, h.Exe)
	}
	_, caps, _ := strings.Cut(ThisSystem().Read("proc/self/status"), "CapEff:\t")
	caps, _, _ = strings.Cut(caps, "\n")
	effective, err := strconv.ParseUint(caps, 16, 64)
	if want := os.Geteuid() == 0 && effective&(1<<unix.CAP_SYS_ADMIN) != 0; err != nil || h.Admin != want {
		t.Errorf("admin %t with capabilities %q, %v", h.Admin, caps, err)
	}
	if h.EUID != 0 && h.UIDs.Root != int64(h.EUID) {
		t.Errorf("user %d maps %+v", h.EUID, h.UIDs)
	}
	if !slices.Contains(h.ProcNames, "meminfo") || slices.Contains(h.ProcNames, strconv.Itoa(os.Getpid())) {
		t.Errorf("names in /proc: %q", h.ProcNames)
	}
	var l unix.Rlimit
	err = unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	if hard, ok := h.HardLimits[unix.RLIMIT_NOFILE]; err != nil || ok != (l.Max != unix.RLIM_INFINITY) || hard != l.Max && ok {
		t.Errorf("hard limit %d, %t; want that of %+v, %v", hard, ok, l, err)
	}
}

// TestIDsOfRootAreNotThoseOfTheHost, and there are more for the sandboxes.
func TestIDsOfRootAreNotThoseOfTheHost(t *testing.T) {
	h := Host{InsideUID: 65534, InsideGID: 65534}
	if os.Geteuid() == 0 {
		var err error
		if h, err = Probe(65534, 65534); err != nil {
			t.Fatal(err)
		}
	} else if err := h.mapRoot(); err != nil {
		t.Fatal(err)
	}
	if HasAllIDs() && (h.UIDs != IDMap{BaseID, BaseID + 65534} || h.GIDs != h.UIDs || h.OwnUIDs.Size != MaxOwnIDs || h.ServerUIDs.Size != MaxServerIDs) {
		t.Errorf("users %+v, groups %+v, own %+v, of servers %+v", h.UIDs, h.GIDs, h.OwnUIDs, h.ServerUIDs)
	}
}

// TestUserMapsToItself, and the code to subordinate IDs where the tools can map them.
func TestUserMapsToItself(t *testing.T) {
	name, uid := UserName(os.Geteuid()), os.Geteuid()
	granted := len(readSubIDs("/etc/subuid", name, uid, nil)) > 0 && len(readSubIDs("/etc/subgid", name, uid, nil)) > 0
	for _, path := range []string{os.Getenv("PATH"), ""} {
		t.Setenv("PATH", path)
		var h Host
		h.mapUser()
		if h.UIDs.Root != int64(uid) || h.GIDs.Root != int64(os.Getegid()) {
			t.Errorf("PATH %q: users %+v, groups %+v", path, h.UIDs, h.GIDs)
		}
		if want := granted && ThisSystem().mapsSubordinateIDs(); h.UIDs.User > 0 != want || h.GIDs.User > 0 != want {
			t.Errorf("PATH %q: users %+v, groups %+v", path, h.UIDs, h.GIDs)
		} else if own := h.OwnUIDs; own.Size > 0 != want || own.Contains(h.UIDs.User) {
			t.Errorf("PATH %q: users %+v and for sandboxes %+v", path, h.UIDs, own)
		} else if !want && (h.UIDs.User != -1 || h.GIDs.User != -1) {
			t.Errorf("PATH %q: users %+v, groups %+v, want none for the code", path, h.UIDs, h.GIDs)
		}
	}
}
