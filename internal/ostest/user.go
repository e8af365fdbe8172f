package ostest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// UserName is the ordinary user that tests make if they run as root, and keep. It has subordinate IDs.
const UserName = "toolcell-test"

// MakeUser makes a user as the distribution's useradd does, unless it is there.
func MakeUser(name string, flags ...string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		out, failed := exec.Command("useradd", append(flags, "--create-home", name)...).CombinedOutput()
		if u, err = user.Lookup(name); err != nil { // else another test has made it
			return nil, fmt.Errorf("making the user %s: %w: %s", name, errors.Join(failed, err), out)
		}
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	// In a further group, as people are: "users" of Debian.
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), Groups: []uint32{100}}, errors.Join(err1, err2)
}

// Again returns a command that runs only the calling test, once more, in a process of its own: as the
// user cred, unless that is nil.
func Again(t *testing.T, cred *syscall.Credential, env ...string) *exec.Cmd {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	c := exec.Command("/proc/self/exe", "-test.run=^"+name+"$")
	c.Env, c.Dir = append(os.Environ(), env...), "/"
	if cred != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
		temp, err := os.MkdirTemp("", "toolcell-test-") // which the user can reach, unlike that of a test
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(temp) })
		if err := os.Chown(temp, int(cred.Uid), int(cred.Gid)); err != nil {
			t.Fatal(err)
		}
		c.Env = append(c.Env, "TMPDIR="+temp)
	}
	return c
}

// inUser is set in the process of AgainAsUser.
const inUser = "TOOLCELL_TEST_USER"

// IsUser reports whether this process is one of AgainAsUser.
func IsUser() bool { return os.Getenv(inUser) != "" }

// AgainAsUser runs the calling test once more as the user UserName, in a process for which IsUser is
// true. The tests run as root of a host.
func AgainAsUser(t *testing.T) {
	t.Helper()
	cred, err := MakeUser(UserName)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := Again(t, cred, inUser+"=1").CombinedOutput(); err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}
