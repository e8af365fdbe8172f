package oci

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// startError adds the cure to an error that the host causes.
func startError(err error, h host) error {
	if probe := probeNamespaces(); probe != nil {
		return &HintError{Err: fmt.Errorf("this host forbids user namespaces: %w", probe), Hint: userNamespaceHint(h.exe)}
	}
	if h.euid == 0 && !h.admin && strings.Contains(err.Error(), "permission denied") {
		return &HintError{Err: err, Hint: "as root of a container, set MCP_BRIDGE_STATE_DIR to a folder that every user may search, such as /var/lib/runcell"}
	}
	if errors.Is(err, unix.ENOSPC) {
		return &HintError{Err: err, Hint: "the disk or /run is full; free some space, or set MCP_BRIDGE_STATE_DIR to another place"}
	}
	return err
}

// probeEnv makes a child of ours end at once (init.go).
const probeEnv = "_RUNCELL_PROBE"

// probeNamespaces makes the namespaces of a sandbox around a child that ends
// at once. Where AppArmor restricts user namespaces they can be made, but give
// no capabilities, so that the others fail.
func probeNamespaces() error {
	c := exec.Command("/proc/self/exe", "probe")
	c.Env = []string{probeEnv + "=1"}
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	return c.Run()
}

// userNamespaceHint gives the command that allows user namespaces here, by
// the setting that forbids them. exe is this program's file.
func userNamespaceHint(exe string) string {
	switch {
	case readInt("/proc/sys/user/max_user_namespaces") == 0:
		return "sudo sysctl -w user.max_user_namespaces=15000"
	case readInt("/proc/sys/kernel/unprivileged_userns_clone") == 0:
		return "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case readInt("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1:
		return appArmorHint(exe)
	}
	return "this kernel or container forbids user namespaces: in a container, start it with\n" +
		"--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
}

// appArmorHint is the profile that lets this program make user namespaces on
// Ubuntu 23.10 and later, which take the capabilities in them away from any
// program that has none.
func appArmorHint(exe string) string {
	return `sudo tee /etc/apparmor.d/runcell <<'EOF'
abi <abi/4.0>,
include <tunables/global>
profile runcell "` + exe + `" flags=(unconfined) {
  userns,
}
EOF
sudo apparmor_parser -r /etc/apparmor.d/runcell`
}
