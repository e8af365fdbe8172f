package ostest

import (
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
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
