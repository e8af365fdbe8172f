package state

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
)

// TestOldKernelsFollowNoLinkEither: they have no openat2.
func TestOldKernelsFollowNoLinkEither(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(dir+"/a/b/c", 0o700), os.WriteFile(dir+"/a/b/c/file", nil, 0o600), os.Symlink("b", dir+"/a/link"), os.Symlink("a/b", dir+"/end")); err != nil {
		t.Fatal(err)
	}
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	for path, want := range map[string]error{
		"a": nil, "a/b/c": nil, "a/link/c": unix.ENOTDIR, "end": unix.ENOTDIR, "a/none": unix.ENOENT, "a/b/c/file": unix.ENOTDIR,
	} {
		fd, err := openBelowBefore56(int(at.Fd()), path, flags)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
		if err == nil {
			unix.Close(fd)
		}
	}
	if open := ostest.OpenFiles(t, dir+"/"); len(open) > 0 {
		t.Errorf("left open: %q", open)
	}
}
