package unpack_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/rootdir"
	"github.com/toolcell/toolcell/rootfs/unpack"
	"golang.org/x/sys/unix"
)

// What a hostile image may try, by name. merge_test.go has the rules of single
// entries in tables; here is what takes more than one entry, or more than a tar.
// Package rootfs has the attacks that need a store.

func TestAttackSymlinkThenWriteThroughItInALaterLayer(t *testing.T) {
	root, err := unpackAll(t,
		pack(t, symlink("up", "../../.."), symlink("abs", "/etc"), dir("d"), symlink("d/secret", "../../secret")),
		pack(t, file("up/secret", "x"), file("abs/passwd", "y"), file("d/secret", "z")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := listTree(t, root); got != "abs->/etc d/ d/secret=z etc/ etc/passwd=y secret=x up->../../.." {
		t.Errorf("got %s", got)
	}
}

func TestAttackHardLinkToOutside(t *testing.T) {
	for _, target := range []string{"../secret", "/../secret", "up/secret", "d/../../secret"} {
		_, err := unpackAll(t, pack(t, dir("d"), symlink("up", "..")), pack(t, hardlink("h", target), file("h", "written")))
		if err == nil {
			t.Errorf("%s: linked", target)
		}
	}
}

func TestAttackFileReplacedByDirectoryAndBack(t *testing.T) {
	root, err := unpackAll(t,
		pack(t, file("a", "1"), dir("b"), file("b/x", "2")),
		pack(t, dir("a"), file("a/x", "3"), file("b", "4")),
		pack(t, file("a", "5"), dir("b"), symlink("b/x", "/secret")),
		pack(t, file("b/x", "6")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := listTree(t, root); got != "a=5 b/ b/x=6" {
		t.Errorf("got %s", got)
	}
}

func TestAttackWhiteoutOfTheRootAndAboveIt(t *testing.T) {
	for name, refused := range map[string]bool{
		".wh..": true, ".wh...": true, ".wh.": true, "a/.wh..": true, "../.wh.secret": false, "../../.wh..wh..opq": false, "/.wh.a": false,
	} {
		root, err := unpackAll(t, pack(t, dir("a"), file("a/x", "1")), pack(t, whiteout(name)))
		if (err != nil) != refused {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := os.Stat(root); err != nil {
			t.Errorf("%q: the root is gone: %v", name, err)
		}
	}
}

func TestAttackDuplicateAndContradictoryEntries(t *testing.T) {
	root, err := unpackAll(t, pack(t,
		file("a", "1"), dir("a"), symlink("a", "/"), file("a", "2"),
		dir("d"), file("d/x", "1"), symlink("d", "/"), dir("d"), file("d/x", "2"),
		whiteout(".wh.a"), file("a", "3"), whiteout("d/.wh.x"), // what this layer has itself stays
	))
	if err != nil {
		t.Fatal(err)
	}
	if got := listTree(t, root); got != "a=3 d/ d/x=2" {
		t.Errorf("got %s", got)
	}
}

func TestAttackDevicesAndPipes(t *testing.T) {
	root, err := unpackAll(t, pack(t, special("dev/sda", tar.TypeBlock), special("dev/kmsg", tar.TypeChar), special("pipe", tar.TypeFifo), file("dev/x", "")))
	if err != nil {
		t.Fatal(err)
	}
	if got := listTree(t, root); got != "dev/ dev/x=" {
		t.Errorf("got %s", got)
	}
}

func TestAttackSetuidAndFileCapabilities(t *testing.T) {
	f := withMode(file("tool", "x"), 0o6755)
	// cap_setuid+ep, as `getcap` would show it (capabilities(7), vfs_cap_data).
	capability := "\x01\x00\x00\x02\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	f.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": capability, "SCHILY.xattr.user.mark": "y"}
	root, err := unpackAll(t, pack(t, f))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(root, "tool")
	if info, err := os.Stat(name); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for _, attr := range []string{"security.capability", "user.mark"} {
		if n, err := unix.Lgetxattr(name, attr, make([]byte, 100)); err == nil {
			t.Errorf("%s has %d bytes", attr, n)
		}
	}
}

// TestAttackSparseFile has a file of holes that GNU tar made: small in the tar,
// large on disk.
func TestAttackSparseFile(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "holes")
	if err := os.WriteFile(name, []byte("start"), 0o644); err != nil {
		t.Fatal(err)
	}
	sized := func(size int64) []byte {
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("tar", "-C", dir, "--sparse", "-c", "holes").Output()
		if err != nil {
			t.Fatal(err)
		}
		if len(out) > 100_000 {
			t.Fatalf("tar made %d bytes: the file system keeps no holes", len(out))
		}
		return out
	}
	root, err := unpackAll(t, sized(500_000))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "holes"))
	if err != nil || len(got) != 500_000 || !bytes.HasPrefix(got, []byte("start\x00")) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := unpackAll(t, sized(1<<40)); err == nil || !strings.Contains(err.Error(), "TOOLCELL_IMAGE_MAX_SIZE") {
		t.Errorf("a terabyte: %v", err)
	}
}

// endlessTar is a tar of entries that never ends.
type endlessTar struct {
	entry func(n int) *tar.Header
	buf   bytes.Buffer
	w     *tar.Writer
	n     int
}

func (e *endlessTar) Read(p []byte) (int, error) {
	if e.w == nil {
		e.w = tar.NewWriter(&e.buf)
	}
	for e.buf.Len() < len(p) {
		if err := e.w.WriteHeader(e.entry(e.n)); err != nil {
			return 0, err
		}
		e.n++
	}
	return e.buf.Read(p)
}

// TestAttackTenMillionEntries: the limit stops a flood of entries early, in
// little memory.
func TestAttackTenMillionEntries(t *testing.T) {
	const most = 100_000
	flood := &endlessTar{entry: func(n int) *tar.Header {
		return &tar.Header{Name: fmt.Sprintf("d/%d", n), Typeflag: tar.TypeSymlink, Linkname: "x"}
	}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := unpack.Extract(t.TempDir(), flood, unpack.NewBudget(1<<30, most))
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "TOOLCELL_IMAGE_MAX_FILES") {
		t.Errorf("got %v", err)
	}
	if flood.n > most+10_000 {
		t.Errorf("read %d entries", flood.n)
	}
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 50<<20 {
		t.Errorf("it took %d MB of memory", grown>>20)
	}
}

// TestAttackNamesTakeRoomToo: a flood of long names counts as bytes.
func TestAttackNamesTakeRoomToo(t *testing.T) {
	flood := &endlessTar{entry: func(n int) *tar.Header {
		return &tar.Header{Name: fmt.Sprintf("%s%d", strings.Repeat("d/", 1900), n), Typeflag: tar.TypeDir, Format: tar.FormatGNU}
	}}
	_, err := unpack.Extract(t.TempDir(), flood, unpack.NewBudget(10<<20, 1_000_000))
	if err == nil || !strings.Contains(err.Error(), "TOOLCELL_IMAGE_MAX_SIZE") {
		t.Errorf("got %v", err)
	}
}

// TestAttackDepth: what a layer may nest has an end, also through symlinks, and up
// to there all of it comes out right.
func TestAttackDepth(t *testing.T) {
	nested := func(levels int) (all []entry) {
		for n := range levels {
			at := strings.Repeat("d/", n+1)
			all = append(all, withMode(dir(at), 0o555), file(at+"f", "x"), hardlink(at+"h", "d/f"))
		}
		return all
	}
	root, err := unpackAll(t, pack(t, nested(rootdir.MaxDepth)...))
	if err != nil {
		t.Fatal(err)
	}
	lowest := filepath.Join(root, strings.Repeat("d/", rootdir.MaxDepth))
	if info, err := os.Stat(lowest); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("%v, %v", info, err)
	}
	if got, err := os.ReadFile(filepath.Join(lowest, "h")); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	half := strings.Repeat("d/", rootdir.MaxDepth/2+1)
	for name, layer := range map[string][]entry{
		"directories": nested(rootdir.MaxDepth + 1),
		"a symlink":   {file(half+"f", ""), symlink("l", half), file("l/"+half+"f", "")},
	} {
		if _, err := unpackAll(t, pack(t, layer...)); err == nil || !strings.Contains(err.Error(), "directories deep") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestMergeCanBeCancelled: an image with millions of entries holds no one.
func TestMergeCanBeCancelled(t *testing.T) {
	layer := t.TempDir()
	b := unpack.NewBudget(1<<20, 1000)
	if _, err := unpack.Extract(layer, bytes.NewReader(pack(t, dir("a"), file("a/b", "x"))), b); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m := unpack.NewMerger(root, b)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Merge(cancelled, layer); !errors.Is(err, context.Canceled) {
		t.Errorf("merging: %v", err)
	}
	if err := m.Merge(t.Context(), layer); err != nil {
		t.Fatal(err)
	}
	if err := m.SetDirModes(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("setting modes: %v", err)
	}
}
