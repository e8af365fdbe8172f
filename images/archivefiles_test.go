package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/compression"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/ostest"
)

// TestImageOfAnArchiveHoldsNoFiles: nobody closes an image.
func TestImageOfAnArchiveHoldsNoFiles(t *testing.T) {
	img := hostImage(t)
	for prefix, file := range map[string]string{
		"docker-archive:": savedOf(t, "py:3", img),
		"oci-archive:":    archiveOf(t, layoutOf(t, map[string]v1.Image{"3": img})),
	} {
		if _, err := (Puller{}).Image(t.Context(), prefix+file); err != nil {
			t.Error(err)
		}
		if open := ostest.OpenFiles(t, filepath.Dir(file)+"/"); len(open) > 0 {
			t.Errorf("%s: %v are open", prefix, open)
		}
	}
}

// TestCompressedArchiveThatIsNoneIsClosed: its content has no name any more, and would fill the disk.
func TestCompressedArchiveThatIsNoneIsClosed(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	file := filepath.Join(t.TempDir(), "text.gz")
	if err := os.WriteFile(file, gzipped(t, []byte(content)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := pullAll(Puller{}, "oci-archive:"+file); err == nil {
		t.Error("a text was read")
	}
	if open := ostest.OpenFiles(t, temp+"/"); len(open) > 0 {
		t.Errorf("%v are open", open)
	}
}

// TestPlainArchiveIsReadInPlace: it needs no room for temporary files, and may be larger than the limit on what
// is decompressed.
func TestPlainArchiveIsReadInPlace(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	plain := savedOf(t, "py:3", hostImage(t))
	packed := compressed(t, plain, compression.GZip)
	t.Setenv("TMPDIR", missing)
	if err := pullAll(Puller{MaxArchive: 1000}, "docker-archive:"+plain); err != nil {
		t.Error(err)
	}
	want := fmt.Sprintf("reading image %q: decompressing archive: open %s/toolcell-", "docker-archive:"+packed, missing)
	if err := pullAll(Puller{}, "docker-archive:"+packed); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("compressed: got %v, want %s", err, want)
	}
}

// TestLargeTemporaryFilesAreNotInMemory, where /tmp may be.
func TestLargeTemporaryFilesAreNotInMemory(t *testing.T) {
	f, err := os.CreateTemp("/var/tmp", "toolcell-test-")
	if err != nil {
		t.Skip(err)
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", "")
	if got := largeTempDir(); got != "/var/tmp" {
		t.Errorf("got %s", got)
	}
	t.Setenv("TMPDIR", "/elsewhere")
	if got := largeTempDir(); got != "/elsewhere" {
		t.Errorf("with TMPDIR: got %s", got)
	}
}

// TestArchiveThatCannotBeOpened says why.
func TestArchiveThatCannotBeOpened(t *testing.T) {
	file := savedOf(t, "py:3", hostImage(t))
	inside := "docker-archive:" + file + "/a.tar"
	want := fmt.Sprintf("reading image %q: open %s/a.tar: not a directory", inside, file)
	if err := pullAll(Puller{}, inside); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	img, err := Puller{}.Image(t.Context(), "docker-archive:"+file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := readImage(img); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, errCorrupt) {
		t.Errorf("an archive that is gone: %v", err)
	}
}

// TestListingAnArchiveEndsWithItsContext, and says nothing but why that ended.
func TestListingAnArchiveEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	ref := "oci-archive:" + archiveOf(t, layoutOf(t, nil))
	if _, err := (Puller{}).Image(ctx, ref); err == nil || err.Error() != fmt.Sprintf("reading image %q: interrupted", ref) {
		t.Errorf("got %v", err)
	}
}

// TestArchiveThatBecameAPipeIsRefused: opening it would wait for a writer for ever.
func TestArchiveThatBecameAPipeIsRefused(t *testing.T) {
	file := savedOf(t, "py:3", hostImage(t))
	img, err := (Puller{}).Image(t.Context(), "docker-archive:"+file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := readImage(img); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("got %v", err)
	}
}
