package homes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A Use is what a folder takes.
type Use struct {
	Bytes int64 // on the disk, as du counts them; a file with several names counts once
	Files int64 // with folders and links
	More  bool  // it takes more than that: it was not looked at as a whole
}

// Size measures the folder of a server, nothing if there is none. It stops at maxBytes, unless that is
// 0, at a million files, and at a depth that no honest tree has. What is mounted in it does not count.
// Files that a running server has open under no name are not seen.
func (s *Store) Size(ctx context.Context, name string, maxBytes int64) (Use, error) {
	return s.size(ctx, record{Name: name}, maxBytes)
}

func (s *Store) size(ctx context.Context, of record, maxBytes int64) (Use, error) {
	e, err := s.entry(of.folder())
	if err == nil {
		var u Use
		if u, err = s.measure(ctx, e, maxBytes); err == nil {
			return u, nil
		}
	}
	return Use{}, fmt.Errorf("measuring the home folder of %q: %w", of.Name, err)
}

// SizeIn is Size of what is at the path of a Home, without a limit of bytes.
func (s *Store) SizeIn(ctx context.Context, path string) (Use, error) {
	e, err := s.entryAt(path)
	if err != nil {
		return Use{}, err
	}
	return s.measure(ctx, e, 0)
}

// measure counts what a home takes.
func measure(ctx context.Context, dir *os.File, r request) (u Use, err error) {
	home, err := openHome(dir, r)
	if errors.Is(err, fs.ErrNotExist) {
		return u, nil
	}
	if err != nil {
		return u, err
	}
	defer home.Close()
	var top unix.Stat_t
	if err := unix.Fstat(int(home.Fd()), &top); err != nil {
		return u, err
	}
	u = Use{Bytes: top.Blocks * 512, Files: 1}
	seen := map[uint64]bool{} // inodes of files with several names; all are on one file system
	w := walk{ctx: ctx, visit: func(_ int, _ string, st *unix.Stat_t) error {
		u.Files++
		if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if seen[st.Ino] {
				return nil
			}
			seen[st.Ino] = true
		}
		if u.Bytes += st.Blocks * 512; r.MaxBytes > 0 && u.Bytes > r.MaxBytes {
			return errEnough
		}
		return nil
	}}
	switch err := w.into(home, 1); {
	case errors.Is(err, errEnough), errors.Is(err, errTooMany), errors.Is(err, errTooDeep):
		u.More = true
	case err != nil:
		return Use{}, err
	}
	return u, nil
}
