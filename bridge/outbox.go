package bridge

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// outDir is the folder in /workspace whose files outlive the run.
const outDir = "out"

// Bounds on it.
const (
	maxOutFiles   = 256
	maxOutEntries = 4096 // looked at
	maxOutDepth   = 8
)

// An outbox is what code has left in /workspace/out. Names are opened one by
// one below the folder above them, and links never: whatever the code makes of
// the place, even while it is read, nothing outside of it is reached.
type outbox struct {
	found    []outFile
	entries  int
	skipped  []string // what is no file
	tooMany  bool
	unlisted error // why a folder could not be read
}

// An outFile is one that was found.
type outFile struct {
	path  string // below out
	stamp outStamp
}

// An outStamp is another one once a file has changed.
type outStamp struct {
	inode uint64
	size  int64
	ctime unix.Timespec
}

// collect takes in the files of a workspace, but for those that are in seen as
// they are, and adds them to it. It is no error if there is no folder for them.
func (f *runFiles) collect(workspace *os.File, seen map[string]outStamp) {
	var b outbox
	root, err := openBelow(workspace, outDir, unix.O_DIRECTORY)
	if err != nil {
		return // the code has removed it, or made something else of it
	}
	defer root.Close()
	b.scan(root, "", 0)
	b.found = slices.DeleteFunc(b.found, func(o outFile) bool { return seen[o.path] == o.stamp })
	slices.SortFunc(b.found, func(a, b outFile) int { return cmp.Compare(a.path, b.path) })
	if len(b.found) > maxOutFiles {
		b.found, b.tooMany = b.found[:maxOutFiles], true
	}
	for _, file := range b.found {
		if err := f.fetch(root, file); err != nil {
			f.note("/workspace/out/%s could not be kept: %v", shownPath(file.path), err)
			if errors.Is(err, unix.ENOSPC) || errors.Is(err, errNoFolder) {
				break // so it would be with the others
			}
		} else {
			seen[file.path] = file.stamp
		}
	}
	if len(b.skipped) > 0 {
		f.note("only regular files in /workspace/out are kept, no links or devices: left out %s", shortList(b.skipped))
	}
	if b.tooMany {
		f.note("/workspace/out has more than %d files; the others are lost. Put many files into one archive", maxOutFiles)
	}
	if b.unlisted != nil {
		f.note("a folder in /workspace/out could not be read: %v", b.unlisted)
	}
}

// scan looks at a folder and at those in it.
func (b *outbox) scan(dir *os.File, path string, depth int) {
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if b.entries++; b.entries > maxOutEntries {
				b.tooMany = true
				return
			}
			b.look(dir, name, path+name, depth)
		}
		if err != nil || len(names) == 0 {
			return
		}
	}
}

func (b *outbox) look(dir *os.File, name, path string, depth int) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return // it is gone
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		b.found = append(b.found, outFile{path, outStamp{st.Ino, st.Size, st.Ctim}})
	case unix.S_IFDIR:
		if depth >= maxOutDepth {
			b.skipped = append(b.skipped, path)
			return
		}
		sub, err := openBelow(dir, name, unix.O_DIRECTORY)
		if err != nil {
			b.unlisted = fmt.Errorf("%q: %w", shownPath(path), err)
			return
		}
		defer sub.Close()
		b.scan(sub, path+"/", depth+1)
	default:
		b.skipped = append(b.skipped, path)
	}
}

// fetch takes in one file. Folders become part of its name.
func (f *runFiles) fetch(root *os.File, file outFile) error {
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
	return f.keep(keptFile{name: file.path}, at)
}

// openBelow opens a name in a folder, no link and no path. Tmpfs has no file
// whose opening or reading waits for somebody.
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

// shownPath is a path of the sandbox's, for a message.
func shownPath(path string) string {
	names := strings.Split(path, "/")
	for i, name := range names {
		names[i] = plainName(name)
	}
	return cut(strings.Join(names, "/"), 200)
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
