package cachedir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolcell/toolcell/internal/state"
)

// An UntrustedError means that other users can change the contents of a folder, so that it
// must not be used: sandboxes would import what they put there. Cure is for the user.
type UntrustedError struct{ Dir, Why, Cure string }

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("%s %s, so what is in it is not used", e.Dir, e.Why)
}

// CheckOwn returns an *UntrustedError if another user can change the contents of a folder or
// of its subfolders with these names. It skips those that do not exist.
func CheckOwn(dir string, names ...string) error {
	for _, name := range append([]string{""}, names...) {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil {
			continue // its user reports the error
		}
		if err := checkOwn(path, info, os.Geteuid()); err != nil {
			return err
		}
	}
	return nil
}

func checkOwn(path string, info os.FileInfo, euid int) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return &UntrustedError{path, "has no owner that is known", "use another folder (MCP_BRIDGE_STATE_DIR)"}
	}
	const elsewhere = ", or use another folder (MCP_BRIDGE_STATE_DIR)"
	another := int(st.Uid) != euid && st.Uid != 0 && (st.Uid != state.UnmappedID || !inUserNamespace())
	switch {
	case another:
		return &UntrustedError{path, "belongs to another user", "remove it, give it back with chown -R" + elsewhere}
	case state.OthersWrite(info.Mode(), int(st.Uid), int(st.Gid)):
		return &UntrustedError{path, "can be written to by other users", "chmod go-w " + path + ", after a look at what they may have put there" + elsewhere}
	}
	return nil
}

// inUserNamespace reports whether some IDs of the host are not mapped.
func inUserNamespace() bool {
	ids, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(ids)), " ") != "0 0 4294967295"
}
