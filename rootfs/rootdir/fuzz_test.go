package rootdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzResolver goes where the kernel goes: openat2(2) with RESOLVE_IN_ROOT takes a path
// as a process in the root would.
func FuzzResolver(f *testing.F) {
	f.Add("a\nb/c\nl ../../b\nm /l/c", "m/../c\nl\n/a/./..//b")
	f.Add("x l\nl x", "l\nx/y")
	f.Add("d/e/f\nd/up ../..\ns d/up/d", "s/e\nd/up/d/e/f/../..\nd/e/f/none")
	f.Add("r/d/v\nr/b/p\nc /r/d/v\nu /c/../../b/p", "u\nc/../../b/p\nc/..\nu/.")
	f.Fuzz(func(t *testing.T, tree, paths string) {
		at := t.TempDir()
		root, err := os.OpenRoot(at)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		for _, line := range strings.Split(tree, "\n")[:min(20, strings.Count(tree, "\n")+1)] {
			name, target, isLink := strings.Cut(line, " ")
			if name, err = Clean(name); err != nil || name == "." {
				continue
			}
			if isLink {
				_ = root.MkdirAll(filepath.Dir(name), 0o755)
				_ = root.Symlink(target, name)
			} else {
				_ = root.MkdirAll(name, 0o755)
			}
		}
		dir, err := unix.Open(at, unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(dir)
		w := NewResolver(root)
		defer w.Close()
		for _, path := range strings.Split(paths, "\n")[:min(20, strings.Count(paths, "\n")+1)] {
			if path == "" || strings.ContainsRune(path, 0) || len(path)+len(tree) > 500 {
				continue // the kernel has other limits
			}
			want, wantErr := kernelPath(dir, at, path)
			_, got, err := w.Find(path)
			if (err == nil) != (wantErr == nil) || err == nil && got != want {
				t.Errorf("%q in %q: %q, %v; the kernel has %q, %v", path, tree, got, err, want, wantErr)
			}
			got, err = ResolveFile(root, path) // more symlinks than the kernel's may lead there
			if (err == nil) != (wantErr == nil) && !errors.Is(wantErr, unix.ELOOP) || err == nil && wantErr == nil && got != want {
				t.Errorf("the file %q in %q: %q, %v; the kernel has %q, %v", path, tree, got, err, want, wantErr)
			}
		}
	})
}

func kernelPath(dir int, at, path string) (string, error) {
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	full, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		return "", err
	}
	return filepath.Rel(at, full)
}
