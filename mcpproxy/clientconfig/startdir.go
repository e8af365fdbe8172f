package clientconfig

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// place says where the server of an entry starts if the entry does not: in the
// project if it belongs there, else in the user's home. python -m NAME, npx NAME
// and many other commands run files that they find in the directory they start in,
// so the user's own servers would run those of any project that the user looks at.
func (d *collector) place(e *Entry, inProject bool) {
	if e.Server.Transport != config.Stdio {
		return
	}
	if inProject {
		e.Server.DefaultDir = d.o.Dir
		return
	}
	e.Server.DefaultDir = d.userDir
	if e.Err == nil && !e.Disabled && d.userDir != d.o.Dir {
		e.Err = e.Server.CheckPaths()
	}
}

// userDir returns where the user's own servers start: in the user's home, also if
// HOME does not lead there, and in the root directory if there is none.
func (o Options) userDir() string {
	if isDir(o.Home) {
		if inHome(o) {
			return o.Dir // another path to it
		}
		return o.Home
	}
	if u, err := user.LookupId(strconv.Itoa(os.Getuid())); err == nil && isDir(u.HomeDir) {
		return u.HomeDir
	}
	return "/"
}

// isDir reports whether path is the full path of a directory.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() && filepath.IsAbs(path)
}
