package rootfs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/rootdir"
	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// TestSameTreeAsUmoci compares what we unpack of real images with what the
// reference implementation of the OCI image specification makes of them.
func TestSameTreeAsUmoci(t *testing.T) {
	umoci, err := exec.LookPath("umoci")
	if err != nil {
		t.Skip("needs umoci: apt install umoci")
	}
	for _, version := range realVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			layout := rootfstest.Layout(t, version)
			bundle := filepath.Join(t.TempDir(), "bundle")
			t.Cleanup(func() { _ = rootdir.RemoveAll(bundle) })
			args := []string{"unpack", "--rootless", "--image", layout + ":" + onlyTag(t, layout), bundle}
			if out, err := exec.Command(umoci, args...).CombinedOutput(); err != nil {
				t.Fatalf("umoci: %v\n%s", err, out)
			}
			s := openStore(t)
			root, err := s.Ensure(ctx, "oci:"+layout, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, got := describe(t, filepath.Join(bundle, "rootfs")), describe(t, root.Dir)
			// The mount points are ours, and so may be what names are looked up
			// in. umoci has empty files in the place of devices, where a sandbox
			// mounts its own /dev.
			maps.DeleteFunc(want, func(name, line string) bool { return strings.HasPrefix(name, "dev/") && line[0] == '-' })
			for _, dir := range mountPoints {
				delete(want, dir)
				delete(got, dir)
			}
			for file := range etcFiles {
				if content, err := os.ReadFile(filepath.Join(root.Dir, file)); err == nil && string(content) == etcFiles[file] {
					delete(want, file)
					delete(got, file)
				}
			}
			compare(t, want, got)
		})
	}
}

// onlyTag reads the tag of a layout of one image.
func onlyTag(t *testing.T, layout string) string {
	t.Helper()
	out, err := exec.Command("umoci", "ls", "--layout", layout).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// describe says of each name in a tree what matters: type, mode, time, and
// content or target.
func describe(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode() &^ (fs.ModeSetuid | fs.ModeSetgid)
		mode |= mode.Perm() >> 6 & 0o005 // what the owner may read, others may in our roots
		line := fmt.Sprintf("%s %d", mode, info.ModTime().Unix())
		switch {
		case mode&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += " -> " + target
		case mode.IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(b)
			line += " " + hex.EncodeToString(sum[:8])
		}
		name, err := filepath.Rel(root, path)
		all[name] = line
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// compare prints the first differences of two trees.
func compare(t *testing.T, want, got map[string]string) {
	t.Helper()
	if len(want) < 1000 {
		t.Errorf("only %d names to compare", len(want))
	}
	var diff []string
	for name, line := range want {
		if got[name] != line {
			diff = append(diff, fmt.Sprintf("%s: got %q, want %q", name, got[name], line))
		}
	}
	for name, line := range got {
		if _, ok := want[name]; !ok {
			diff = append(diff, fmt.Sprintf("%s: got %q, want nothing", name, line))
		}
	}
	slices.Sort(diff)
	if len(diff) > 0 {
		t.Errorf("%d differences, such as\n%s", len(diff), strings.Join(diff[:min(len(diff), 30)], "\n"))
	}
}
