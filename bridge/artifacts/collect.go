package artifacts

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// outDir is the folder in /workspace whose files outlive the run.
const outDir = "out"

// Bounds on it.
const (
	maxOutFiles   = 256
	maxOutEntries = 4096 // looked at
	maxOutDepth   = 8
	maxReasons    = 5 // why a file could not be kept
)

// A Workspace is the /workspace of a sandbox.
type Workspace struct {
	dir       *os.File
	mounted   []string               // paths in the sandbox, where the code has not put what is there
	collected map[string]state.Stamp // files in out that are kept already, by path
}

// NewWorkspace makes a workspace of an open folder, which stays the caller's. Mounted
// are the paths in the sandbox where files of the host are.
func NewWorkspace(dir *os.File, mounted []string) *Workspace {
	return &Workspace{dir: dir, mounted: mounted, collected: map[string]state.Stamp{}}
}

// A scan looks for files in /workspace/out, or elsewhere in /workspace. It opens names one by one below the
// folder above them, and never links: nothing outside of the folder is reached,
// whatever the code puts there, even during the scan.
type scan struct {
	leaveOut func(path string) bool // may be nil

	found    []outFile
	entries  int
	skipped  []string // what is not a regular file
	tooDeep  []string // folders
	tooMany  bool     // more than maxOutEntries
	unlisted error    // why a folder could not be read
}

// An outFile is a file that was found.
type outFile struct {
	path  string // below the folder of the scan
	stamp state.Stamp
}

// Collect copies the files in /workspace/out that are new or changed since the
// last call for this workspace. A file that cannot be kept becomes a note.
func (c *Collector) Collect(w *Workspace) {
	root, err := openBelow(w.dir, outDir, unix.O_DIRECTORY)
	if errors.Is(err, fs.ErrNotExist) {
		return // the code has removed it
	}
	if err != nil {
		c.addNote("/workspace/out is not a folder any more, and nothing of it is kept: %v", err)
		return
	}
	defer root.Close()
	var s scan
	s.readFolder(root, "", 0)
	s.found = slices.DeleteFunc(s.found, func(o outFile) bool { return w.collected[o.path] == o.stamp })
	slices.SortFunc(s.found, func(a, b outFile) int { return cmp.Compare(a.path, b.path) })
	if n := len(s.found); n > maxOutFiles {
		s.found = s.found[:maxOutFiles]
		c.addNote("/workspace/out has %d new files, and a run keeps at most %d. Put many files into one archive", n, maxOutFiles)
	}
	c.fetchAll(root, s.found, w)
	c.noteLeftOutOf(&s)
}

// fetchAll keeps the files, and notes why some could not be kept.
func (c *Collector) fetchAll(root *os.File, files []outFile, w *Workspace) {
	unkept, noted := 0, 0
	for i, file := range files {
		err := c.fetch(root, file, func() { w.collected[file.path] = file.stamp })
		if err == nil {
			continue
		}
		if unkept++; noted < maxReasons {
			noted++
			c.addNote("/workspace/out/%s could not be kept: %v", shownPath(file.path), err)
		}
		if isFull(err) || errors.Is(err, ErrNoFolder) || errors.Is(err, errGrown) {
			unkept += len(files) - i - 1 // so it would be with the others
			break
		}
	}
	if more := unkept - noted; more > 0 {
		c.addNote("%s in /workspace/out could not be kept", moreFiles(more))
	}
}

func (c *Collector) noteLeftOutOf(s *scan) {
	if len(s.skipped) > 0 {
		c.addNote("only regular files in /workspace/out are kept, no links or devices: left out %s", shortList(s.skipped))
	}
	if len(s.tooDeep) > 0 {
		c.addNote("folders in /workspace/out are kept to a depth of %d: left out %s", maxOutDepth, shortList(s.tooDeep))
	}
	if s.tooMany {
		c.addNote("/workspace/out has more than %d files and folders, and no more are looked at. Put many files into one archive", maxOutEntries)
	}
	if s.unlisted != nil {
		c.addNote("a folder in /workspace/out could not be read: %v", s.unlisted)
	}
}

// readFolder looks at everything in a folder, and in those below it.
func (s *scan) readFolder(dir *os.File, path string, depth int) {
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if s.entries++; s.entries > maxOutEntries {
				s.tooMany = true
				return
			}
			s.add(dir, name, path+name, depth)
		}
		if err != nil || len(names) == 0 {
			return
		}
	}
}

func (s *scan) add(dir *os.File, name, path string, depth int) {
	if s.leaveOut != nil && s.leaveOut(path) {
		return
	}
	stamp, err := state.StampIn(dir, name)
	if err != nil {
		return // it is gone
	}
	switch stamp.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.found = append(s.found, outFile{path, stamp})
	case unix.S_IFDIR:
		if depth >= maxOutDepth {
			s.tooDeep = append(s.tooDeep, path)
			return
		}
		sub, err := openBelow(dir, name, unix.O_DIRECTORY)
		if err != nil {
			s.unlisted = fmt.Errorf("%q: %w", shownPath(path), err)
			return
		}
		defer sub.Close()
		s.readFolder(sub, path+"/", depth+1)
	default:
		s.skipped = append(s.skipped, path)
	}
}

// fetch copies one file, and calls published once clients can read it. Folders become part of
// its name.
func (c *Collector) fetch(root *os.File, file outFile, published func()) error {
	at := root
	parts := strings.Split(file.path, "/")
	for i, part := range parts {
		flags := unix.O_DIRECTORY
		if i == len(parts)-1 {
			flags = unix.O_NONBLOCK // by now it may be a pipe
		}
		next, err := openBelow(at, part, flags)
		if at != root {
			at.Close()
		}
		if err != nil {
			return err
		}
		at = next
	}
	defer at.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(at.Fd()), &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return errors.New("it is no regular file any more")
	}
	if st.Size > c.room() { // a sparse file costs the code nothing, and copying it costs us
		return errNoRoom
	}
	_, err := c.keep(keptFile{name: file.path, named: func(string, string) bool {
		published()
		return true
	}}, at)
	if errors.Is(err, errNoRoom) {
		return errGrown
	}
	return err
}

// openBelow opens a name in a folder: neither a link nor a path. No file on a tmpfs
// blocks when it is opened so or read.
func openBelow(dir *os.File, name string, flags int) (*os.File, error) {
	if strings.Contains(name, "/") {
		return nil, unix.EINVAL
	}
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// shownPath makes a path from the sandbox fit for a message.
func shownPath(path string) string {
	names := strings.Split(path, "/")
	for i, name := range names {
		names[i] = plainName(name)
	}
	return text.OneLine(strings.Join(names, "/"), 200)
}

// shortList names the first few of many.
func shortList(paths []string) string {
	var out []string
	for _, path := range paths[:min(len(paths), 5)] {
		out = append(out, shownPath(path))
	}
	if more := len(paths) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}
