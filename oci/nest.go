package oci

/*
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CLONE_NEWUSER
#define CLONE_NEWUSER 0x10000000
#endif
#ifndef CLONE_NEWNS
#define CLONE_NEWNS 0x00020000
#endif

int unshare(int flags);

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0) {
		dprintf(2, "runcell: writing %s: %s\n", path, strerror(errno));
		_exit(125);
	}
	close(fd);
}

// A process with more than one thread cannot make a user namespace for
// itself, and the Go runtime has several from its first line on: so this runs
// before it, as libcontainer's own nsenter does.
__attribute__((constructor)) static void nest_user_namespace(void)
{
	const char *ids = getenv("_RUNCELL_NEST");
	unsigned int uid, gid, hide;
	char line[64];

	if (ids == NULL)
		return;
	if (sscanf(ids, "%u:%u:%u", &uid, &gid, &hide) != 3)
		_exit(125);
	if (unshare(CLONE_NEWUSER | (hide ? CLONE_NEWNS : 0)) < 0) {
		dprintf(2, "runcell: nesting a user namespace: %s\n", strerror(errno));
		_exit(125);
	}
	// Without this an unprivileged gid_map is refused (user_namespaces(7)).
	put("/proc/self/setgroups", "deny");
	snprintf(line, sizeof line, "%u 0 1", uid);
	put("/proc/self/uid_map", line);
	snprintf(line, sizeof line, "%u 0 1", gid);
	put("/proc/self/gid_map", line);
	// The /proc that is there so far shows the processes of the host. It is
	// covered for good: nothing in here will have the right to uncover it.
	if (hide && mount("tmpfs", "/proc", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=555") < 0) {
		dprintf(2, "runcell: covering /proc: %s\n", strerror(errno));
		_exit(125);
	}
}
*/
import "C"

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/opencontainers/runc/libcontainer/seccomp"
	"github.com/opencontainers/runc/libcontainer/specconv"
	"golang.org/x/sys/unix"
)

// nestEnv makes the C code above act; its value is "uid:gid:hide", hide being
// 1 if /proc is to be covered.
const nestEnv = "_RUNCELL_NEST"

// The first argument of the stage says which seccomp profile to load.
const (
	nestWatched   = "watched"
	nestUnwatched = "unwatched"
)

// nestPath is where a sandbox sees this program, if it needs to.
const nestPath = ownDir + "/nest"

// nest is the second stage of a sandbox that has only one id, or no /proc. libcontainer has
// built everything else, and the C code above has just made a user namespace
// in which that id is the user's; a new user namespace comes with every
// capability over itself, so they are dropped here, the seccomp filter is
// loaded, and the process becomes the user's. It does not return.
func nest() {
	err := nestExec(os.Args[2:])
	fmt.Fprintln(os.Stderr, "runcell: entering the sandbox:", err)
	os.Exit(125)
}

// nestExec returns only if it fails.
func nestExec(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("no program named")
	}
	unwatched := args[0] == nestUnwatched
	args = args[1:]
	if err := dropCapabilities(); err != nil {
		return err
	}
	profile, err := seccompProfile(unwatched)
	if err != nil {
		return err
	}
	config, err := specconv.SetupSeccomp(profile)
	if err != nil {
		return fmt.Errorf("converting the seccomp profile: %w", err)
	}
	if _, err := seccomp.InitSeccomp(config); err != nil {
		return fmt.Errorf("loading the seccomp filter: %w", err)
	}
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, nestEnv+"=") })
	return fmt.Errorf("running %q: %w", args[0], unix.Exec(args[0], args, env))
}

// dropCapabilities empties every capability set of this thread, the bounding
// set first, since that needs CAP_SETPCAP (capabilities(7)).
func dropCapabilities() error {
	for c := uintptr(0); c <= 63; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			break // past the last capability that this kernel knows
		} else if err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}
