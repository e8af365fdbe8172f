package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// A folder is one that toolcell works in, or its nearest existing parent.
type folder struct {
	Path   string
	At     string // the nearest existing parent that we can see
	Owner  int    // of At
	Err    error  // why nothing can be written there
	Free   int64  // bytes that we may still write, -1 if unknown
	Dev    uint64 // the file system of At
	NoExec bool   // mounted noexec
	Closed string // a parent that sandboxes may not search

	Rights []rights // of At, and of the folder that At is in if At is Path
}

// lookAt examines a folder without creating it.
func lookAt(path string, h host.Host) folder {
	f := searchOnly(path, h)
	f.Err = tryWrite(f.At)
	return f
}

// searchOnly examines a folder without writing to it.
func searchOnly(path string, h host.Host) folder {
	f := folder{Path: path, At: path, Free: -1, Closed: closedTo(path, h)}
	for {
		st, err := os.Stat(f.At)
		if err == nil {
			sys := st.Sys().(*syscall.Stat_t)
			f.Owner, f.Dev = int(sys.Uid), sys.Dev
			break
		}
		if up := filepath.Dir(f.At); up != f.At && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
			f.At = up
			continue
		}
		break // tryWrite reports the cause
	}
	f.Rights = rightsOf(f)
	var s unix.Statfs_t
	if unix.Statfs(f.At, &s) == nil {
		f.Free = int64(s.Bavail) * s.Bsize
		f.NoExec = s.Flags&unix.ST_NOEXEC != 0
	}
	return f
}

// tryWrite writes a page, since an empty file can often be created on a full disk.
func tryWrite(dir string) error {
	t, err := os.CreateTemp(dir, ".toolcell-doctor-")
	if err != nil {
		return cause(err)
	}
	defer os.Remove(t.Name())
	_, err = t.Write(make([]byte, 4096))
	return cause(errors.Join(err, t.Close()))
}

// cause returns only the kernel's error: the name of a temporary file does not help the
// user.
func cause(err error) error {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno
	}
	return err
}

// closedTo returns the topmost folder on the way to a path that sandboxes cannot search, or
// "". Root of a container maps them to IDs that own nothing, and cannot mount their root
// elsewhere (searchableroot.go).
func closedTo(path string, h host.Host) string {
	if h.EUID != 0 || h.Admin || h.UIDs.Root == 0 {
		return ""
	}
	closed := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.IsDir() && st.Mode()&0o001 == 0 {
			closed = dir
		}
		if dir == filepath.Dir(dir) {
			return closed
		}
	}
}

// lowSpace is less than an image and a few runs need.
const lowSpace = 200 << 20

// folderChecks reports the worst problem of each kind, once.
func folderChecks(f *hostFacts) []Check {
	var checks []Check
	seen := map[string]bool{}
	add := func(c Check) {
		if !seen[c.Code] {
			checks = append(checks, c)
		}
		seen[c.Code] = true
	}
	for _, dir := range f.folders {
		if dir.Err != nil && !full(dir.Err) {
			add(unwritableCheck(f, dir))
		}
	}
	for _, dir := range f.folders {
		if full(dir.Err) {
			add(fullCheck(f, dir))
		}
	}
	for _, dir := range f.folders {
		switch {
		// Only one of the folders has images: what is kept in /run is small.
		case dir.Path == f.needs.Images && dir.Err == nil && dir.Free >= 0 && dir.Free < lowSpace:
			add(fullCheck(f, dir))
		case dir.Path == f.needs.Images && dir.Closed != "":
			add(Fatal("RC-STATE-CLOSED", fmt.Sprintf("the ids of sandboxes may not enter %s, and their files are below it", dir.Closed), elsewhere(f, "/var/lib/toolcell", 0o755)))
		case dir.Path == f.needs.Images && dir.NoExec:
			add(Degraded("RC-STATE-NOEXEC", fmt.Sprintf("%s is mounted noexec, so that no image can run, but only this host's own Python (--image host)", dir.At),
				elsewhere(f, ownFolder(f), 0o700)))
		}
	}
	for _, dir := range slices.Concat(f.folders, f.readOnly) {
		for i, r := range dir.Rights {
			if c, found := othersCheck(f, r, i > 0); found {
				add(c)
			}
		}
	}
	if len(checks) == 0 {
		checks = append(checks, OK("RC-STATE", "toolcell's folders can be written to"))
	}
	return checks
}

func unwritableCheck(f *hostFacts, dir folder) Check {
	cure := elsewhere(f, ownFolder(f), 0o700)
	if home := f.Getenv("HOME"); strings.HasPrefix(dir.Path, strings.TrimSuffix(home, "/")+"/") && filepath.IsAbs(home) && !f.Exists(strings.Trim(home, "/")) {
		if real := homeOf(f); real != "" && real != home {
			cure = "export HOME=" + text.ShellWord(real) + "\n# or use another folder:\n" + cure
		}
		return Fatal("RC-STATE", fmt.Sprintf("HOME is %s, which does not exist, and toolcell would keep its files there", home), cure)
	}
	if errors.Is(dir.Err, fs.ErrPermission) && strings.Contains(dir.At, "toolcell") {
		own := "chmod -R u+rwX " + text.ShellWord(dir.At)
		if dir.Owner != f.host.EUID {
			own = f.asRoot("chown -R " + f.user + " " + text.ShellWord(dir.At))
		}
		cure = own + "\n# or use another folder:\n" + cure
	}
	return Fatal("RC-STATE", fmt.Sprintf("nothing can be written to %s, and toolcell works there: %v", dir.At, dir.Err), cure)
}

// homeOf returns the user's home in /etc/passwd, "" if there is none.
func homeOf(f *hostFacts) string {
	for line := range strings.Lines(f.Read("etc/passwd")) {
		if fields := strings.Split(line, ":"); len(fields) > 5 && fields[0] == f.user && f.Exists(strings.Trim(fields[5], "/")) {
			return fields[5]
		}
	}
	return ""
}

// fullCheck is also the cause that ExplainStart gives for an ENOSPC error.
func fullCheck(f *hostFacts, dir folder) Check {
	at := dir.Path
	if dir.At != "" {
		at = dir.At
	}
	cure := "df -h " + text.ShellWord(at) + "\n# free some space there, for example that of images not used for a month:\n" +
		f.program() + " images prune --unused 30\n"
	if f.spare.Free > lowSpace && f.spare.Dev != dir.Dev && f.spare.Err == nil {
		cure += fmt.Sprintf("# or use another disk, which has %d GB left:\n", f.spare.Free>>30) + elsewhere(f, f.spare.Path, 0o700)
	} else {
		cure += "# or name a folder on another disk in TOOLCELL_STATE_DIR"
	}
	if dir.Err != nil {
		return Fatal("RC-STATE-FULL", fmt.Sprintf("there is no space for %s (%v)", dir.Path, cause(dir.Err)), cure)
	}
	return Degraded("RC-STATE-FULL", fmt.Sprintf("there are only %d MiB left for %s, and an image may need more", dir.Free>>20, dir.Path), cure)
}

func full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// ownFolder returns a path that exists on every Linux and survives restarts.
func ownFolder(f *hostFacts) string { return fmt.Sprintf("/var/tmp/toolcell-%d", f.host.EUID) }

// elsewhere returns the command that creates a new state folder. mkdir fails if another user
// has already created it.
func elsewhere(f *hostFacts, dir string, mode fs.FileMode) string {
	export := "export TOOLCELL_STATE_DIR=" + text.ShellWord(dir)
	if st, err := fs.Stat(f.Files, strings.Trim(dir, "/")); err == nil && st.IsDir() {
		if sys, ok := st.Sys().(*syscall.Stat_t); ok && int(sys.Uid) == f.host.EUID {
			return export
		}
	}
	return fmt.Sprintf("mkdir -m %o %s && %s", mode, text.ShellWord(dir), export)
}

// minFiles is how many open files a Python program may need.
const minFiles = 1024

func filesCheck(f *hostFacts) Check {
	n := f.host.HardLimits[unix.RLIMIT_NOFILE]
	if n == 0 || n >= minFiles {
		return OK("RC-FILES", "enough files can be open at once")
	}
	cure := ""
	switch e := f.Container(); {
	case e == host.EngineDocker || e == host.EnginePodman:
		cure = "# start the container with this flag more:\n--ulimit nofile=4096:4096"
	case e == "" && f.Exists("etc/security/limits.d"):
		cure = f.asRoot("echo '"+f.user+" hard nofile 4096' | tee /etc/security/limits.d/toolcell.conf", "# then log in again")
	case f.host.EUID == 0:
		cure = "ulimit -Hn 4096"
	}
	return Degraded("RC-FILES", fmt.Sprintf("code can have only %d files open at once (ulimit -Hn), where 4096 are meant", n), cure)
}

// pythonCheck: the host's own Python is the fallback if no image is available.
func pythonCheck(f *hostFacts) Check {
	if f.needs.PythonErr == nil {
		return OK("RC-PYTHON", f.needs.Python+" can stand in where no image can be had")
	}
	cure := f.install(packageNames{"apt-get": "python3", "dnf": "python3", "apk": "python3", "pacman": "python", "zypper": "python3"})
	return Degraded("RC-PYTHON", "without an image from a registry nothing can run: "+f.needs.PythonErr.Error(), cure)
}
