package footprint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/state"
)

// A fileID tells files from each other.
type fileID struct{ dev, inode uint64 }

// A tally counts the files of one kind.
type tally struct {
	Use
	names []string // of the user's own files
	seen  map[fileID]*linked

	owned    func(path string) (bytes, files int64, err error) // measures a folder that is counted; nil if this package can
	problems []string
}

// A linked file has several names.
type linked struct {
	bytes int64
	unmet int // names that were not among the files
}

// measure counts the kinds at the same time: links between files are within one.
func (f *Found) measure(ctx context.Context) error {
	tallies, errs := make([]tally, len(Kinds)), make([]error, len(Kinds))
	var work sync.WaitGroup
	for n, kind := range Kinds {
		t := &tallies[n]
		t.Kind, t.seen = kind, map[fileID]*linked{}
		work.Go(func() {
			defer contain.Error("measuring files", &errs[n])
			for _, i := range f.items {
				if i.kind == kind && errs[n] == nil {
					errs[n] = t.item(ctx, i)
				}
			}
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, t := range tallies {
		f.Problems = append(f.Problems, t.problems...)
		if t.Files == 0 {
			continue
		}
		for _, l := range t.seen {
			if l.unmet > 0 {
				t.Shared += l.bytes
			}
		}
		slices.Sort(t.Folders)
		f.Uses = append(f.Uses, t.Use)
		if t.Kind == OwnFiles {
			f.Names = t.names
		}
	}
	return nil
}

// item counts an item.
func (t *tally) item(ctx context.Context, i item) error {
	folder := i.full()
	if t.Kind != Other && i.path != "." {
		name, _, _ := strings.Cut(i.path, "/")
		folder = filepath.Join(i.place.Dir, name)
	}
	if t.Kind == Running || t.Kind == OwnFiles || t.Kind == Program || t.Kind == Decisions {
		folder = i.place.Dir
	}
	if !slices.Contains(t.Folders, folder) {
		t.Folders = append(t.Folders, folder)
	}
	if i.folder {
		return t.file(int(i.place.dir.Fd()), i.path, i.path, "", nil)
	}
	t.owned = nil
	if o := i.place.Owned; o != nil && i.kind == Homes {
		t.owned = func(path string) (bytes, files int64, err error) {
			return o.Measure(ctx, filepath.Join(i.place.Dir, path))
		}
	}
	down := func(dir *os.File, path string) error { return t.tree(ctx, dir, path, i.counted()) }
	at, closeAt, err := i.parent()
	if err != nil {
		return nil //nolint:nilerr // it has gone meanwhile
	}
	defer closeAt()
	return t.file(at, filepath.Base(i.path), i.path, i.counted(), down)
}

// parent opens the folder that an item is in.
func (i item) parent() (fd int, closeIt func(), err error) {
	above := filepath.Dir(i.path)
	if above == "." {
		return int(i.place.dir.Fd()), func() {}, nil
	}
	dir, err := state.OpenBelow(int(i.place.dir.Fd()), above)
	if err != nil {
		return 0, nil, err
	}
	return int(dir.Fd()), func() { _ = dir.Close() }, nil // it was only read
}

// file counts a file, and calls down with a folder that can be opened. One that has gone meanwhile
// counts nothing.
func (t *tally) file(at int, name, path, counted string, down func(*os.File, string) error) error {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil //nolint:nilerr // it has gone meanwhile
	}
	t.Files++
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if counted == "" && !isDir {
		t.Count++
	} else if ok, _ := filepath.Match(counted, path); ok && counted != "" {
		t.Count++
		if isDir && t.owned != nil {
			t.ownedFolder(path, st.Blocks*512)
			return nil
		}
	}
	if !isDir && t.Kind == OwnFiles && len(t.names) < maxNames {
		t.names = append(t.names, path)
	}
	bytes := st.Blocks * 512 // of stat(2), whatever the file system's blocks are
	if !isDir && st.Nlink > 1 {
		id := fileID{st.Dev, st.Ino}
		if l, again := t.seen[id]; again {
			l.unmet--
			return nil
		}
		t.seen[id] = &linked{bytes, int(st.Nlink) - 1}
	}
	t.Bytes += bytes
	if !isDir || down == nil {
		return nil
	}
	dir, err := state.OpenBelow(at, name)
	if err != nil {
		return nil //nolint:nilerr // closed even to its owner, or mounted there: it counts as empty
	}
	defer dir.Close()
	return down(dir, path)
}

// ownedFolder counts a folder that it cannot look into, and all that is in it. top is what the folder
// takes itself.
func (t *tally) ownedFolder(path string, top int64) {
	bytes, files, err := t.owned(path)
	if err != nil {
		t.Bytes += top
		if len(t.problems) < maxNames {
			t.problems = append(t.problems, err.Error())
		}
		return
	}
	t.Bytes += bytes
	t.Files += int(files) - 1 // the folder is counted
}

func (t *tally) tree(ctx context.Context, dir *os.File, path, counted string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	names, err := namesIn(dir)
	if err != nil {
		return nil //nolint:nilerr // removed meanwhile
	}
	for _, name := range names {
		down := func(dir *os.File, path string) error { return t.tree(ctx, dir, path, counted) }
		if err := t.file(int(dir.Fd()), name, path+"/"+name, counted, down); err != nil {
			return err
		}
	}
	return nil
}

// namesIn lists a folder, in order.
func namesIn(dir *os.File) ([]string, error) {
	if _, err := dir.Seek(0, 0); err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir.Name(), err)
	}
	slices.Sort(names)
	return names, nil
}
