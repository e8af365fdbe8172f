package oci

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// startError adds the cure to an error that the host causes.
func startError(err error, h host) error {
	if hint := userNamespaceHint(h.exe); hint != "" {
		return &HintError{Err: err, Hint: hint}
	}
	if h.euid == 0 && !h.admin && strings.Contains(err.Error(), "permission denied") {
		return &HintError{Err: err, Hint: "as root of a container, set MCP_BRIDGE_STATE_DIR to a folder that every user may search, such as /var/lib/runcell"}
	}
	if errors.Is(err, unix.ENOSPC) && !strings.Contains(err.Error(), "clone") {
		return &HintError{Err: err, Hint: "the disk or /run is full; free some space, or set MCP_BRIDGE_STATE_DIR to another place"}
	}
	return err
}

// userNamespaceHint gives the command that allows user namespaces here, or ""
// if nothing known forbids them. exe is this program's file.
func userNamespaceHint(exe string) string {
	if os.Geteuid() == 0 && readInt("/proc/sys/user/max_user_namespaces") != 0 {
		return ""
	}
	switch {
	case readInt("/proc/sys/user/max_user_namespaces") == 0:
		return "sudo sysctl -w user.max_user_namespaces=15000"
	case readInt("/proc/sys/kernel/unprivileged_userns_clone") == 0:
		return "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case readInt("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1:
		return appArmorHint(exe)
	}
	return ""
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
