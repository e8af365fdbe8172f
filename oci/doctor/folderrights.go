package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// rights say who may change the contents of a folder.
type rights struct {
	Path         string
	Owner, Group int
	Mode         fs.FileMode
}

// rightsOf returns the rights of a folder and, if it exists already, of its parent: a user who
// may write to the parent can replace the folder.
func rightsOf(f folder) (all []rights) {
	paths := []string{f.At}
	if f.At == f.Path {
		paths = append(paths, filepath.Dir(f.At))
	}
	for _, path := range paths {
		if st, err := os.Stat(path); err == nil {
			sys := st.Sys().(*syscall.Stat_t)
			all = append(all, rights{path, int(sys.Uid), int(sys.Gid), st.Mode()})
		}
	}
	return all
}

// rightsInside returns a folder with only its own rights: its parent is checked separately.
func rightsInside(path string) folder {
	if _, err := os.Lstat(path); err != nil {
		return folder{Path: path}
	}
	f := folder{Path: path, At: path}
	f.Rights = rightsOf(f)[:1]
	return f
}

// othersCheck reports whether another user may change what toolcell keeps in a folder or,
// if above, replace a folder in it.
func othersCheck(f *hostFacts, r rights, above bool) (c Check, found bool) {
	const (
		code        = "RC-STATE-OTHERS"
		consequence = "can change what toolcell keeps there, such as the policy, saved tools, logins or the trust in project files"
	)
	another := r.Owner != f.host.EUID && r.Owner != 0 && !(r.Owner == state.UnmappedID && f.InUserNamespace())
	sticky := above && r.Mode&fs.ModeSticky != 0 // like /tmp: others cannot replace its contents
	cure := elsewhere(f, ownFolder(f), 0o700)
	switch {
	case another:
		if strings.Contains(r.Path, "toolcell") {
			cure = f.asRoot("chown -R "+f.user+" "+text.ShellWord(r.Path)) + "\n# or use another folder:\n" + cure
		}
		return Degraded(code, fmt.Sprintf("%s belongs to uid %d, who %s", r.Path, r.Owner, consequence), cure), true
	case state.OthersWrite(r.Mode, r.Owner, r.Group) && !sticky:
		if r.Owner == f.host.EUID {
			cure = "chmod go-w " + text.ShellWord(r.Path)
		}
		return Degraded(code, fmt.Sprintf("others may write to %s (mode %04o), and so they %s", r.Path, r.Mode.Perm(), consequence), cure), true
	}
	return Check{}, false
}
