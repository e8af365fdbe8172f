package container

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// TestUncoveredMountsAreFound in what a sandbox has mounted, before code runs.
func TestUncoveredMountsAreFound(t *testing.T) {
	const (
		folder = `30 20 8:1 /w /data ro,nosuid,nodev,noexec - ext4 /dev/sda1 rw` + "\n"
		sub    = `31 30 0:40 / /data/sub\040dir rw,relatime - tmpfs none rw` + "\n"
		inner  = `32 31 0:41 / /data/sub\040dir/inner rw,relatime - tmpfs none rw` + "\n"
		cover  = `33 31 0:42 / /data/sub\040dir ro,nosuid,nodev,noexec - tmpfs tmpfs ro,size=4k` + "\n"
		file   = `34 30 8:1 /secret /data/f rw - ext4 /dev/sda1 rw` + "\n"
		null   = `35 34 0:5 /null /data/f rw,nosuid - devtmpfs dev rw` + "\n"
		beside = `36 20 0:43 / /data2 rw - tmpfs none rw` + "\n"
	)
	for name, tt := range map[string]struct {
		info, below string // below is what was known at the start
		good        bool
	}{
		"nothing below":                 {folder + beside, "", true},
		"a folder, covered":             {folder + sub + cover, "/data/sub dir", true},
		"with one below":                {folder + sub + inner + cover, "/data/sub dir", true},
		"a file, covered":               {folder + file + null, "/data/f", true},
		"not covered":                   {folder + sub, "/data/sub dir", false},
		"a file, not covered":           {folder + file, "/data/f", false},
		"mounted since":                 {folder + sub + cover, "", false},
		"one of two":                    {folder + sub + cover + file, "/data/sub dir", false},
		"it looks like a cover":         {folder + cover, "/data/sub dir", false},
		"mounted over the cover":        {folder + sub + cover + sub, "/data/sub dir", false},
		"not to be read, so not proven": {"what is this\n", "", false},
	} {
		shown := spec.ShownMount{Source: "/w", Target: "/data"}
		if tt.below != "" {
			shown.Below = []string{tt.below}
		}
		if err := uncovered([]byte(tt.info), []spec.ShownMount{shown}); (err == nil) != tt.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnshowableTreesAreNamed where the kernel is too old for them.
func TestUnshowableTreesAreNamed(t *testing.T) {
	binds := []spec.Bind{{Source: "/", Target: "/usr"}} // below it is /proc, at least
	var tree *TreeError
	if err := checkTrees(binds, spec.Host{}); !errors.As(err, &tree) || !slices.Contains(tree.Points, "/proc") || !strings.Contains(tree.Advice(), "settings set image") {
		t.Errorf("got %v", err)
	}
	for name, h := range map[string]host.Host{"new kernel": {Recursive: true}, "real root": {Admin: true}} {
		if err := checkTrees(binds, spec.Host{Host: h}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkTrees([]spec.Bind{{Source: t.TempDir(), Target: "/usr"}}, spec.Host{}); err != nil {
		t.Errorf("with nothing below: %v", err)
	}
}

// TestSkeletonHasAllOfTheImage beside the places of mounts, and follows no link.
func TestSkeletonHasAllOfTheImage(t *testing.T) {
	image := t.TempDir()
	write := func(name string) {
		t.Helper()
		file := filepath.Join(image, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"usr/bin/x", "var/lib/a/f", "var/lib/file", "var/other/f", "tmp/f", "proc/f", "run/lock/f", "run/toolcell/f", "opt/f", "top.txt"} {
		write(name)
	}
	if err := os.Symlink("usr/bin", filepath.Join(image, "bin")); err != nil {
		t.Fatal(err)
	}
	shown := func(dir bool, targets ...string) (out []spec.ShownMount) {
		for _, target := range targets {
			out = append(out, spec.ShownMount{Target: target, Dir: dir})
		}
		return out
	}
	root := spec.Root{Dir: image}
	if s, err := planSkeleton(root, shown(true, "/opt", "/tmp/x", "/workspace/y")); err != nil || len(s.make) > 0 {
		t.Errorf("where the image has the places: %+v, %v", s, err)
	}
	s, err := planSkeleton(root, append(shown(true, "/data", "/var/lib/new/deep"), shown(false, "/var/lib/new/file")...))
	if err != nil {
		t.Fatal(err)
	}
	var bound []string
	for _, b := range s.binds {
		bound = append(bound, b.Target)
		if b.Source != image+b.Target {
			t.Errorf("bound: %+v", b)
		}
	}
	slices.Sort(bound)
	if want := []string{"/opt", "/run/lock", "/top.txt", "/usr", "/var/lib/a", "/var/lib/file", "/var/other"}; !slices.Equal(bound, want) {
		t.Errorf("bound: %q, want %q", bound, want)
	}
	at := filepath.Join(t.TempDir(), "root")
	if err := s.write(filepath.Dir(at), at); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data", "var/lib/new/deep", "tmp", "proc", "run/toolcell", "usr", "var/other"} {
		if info, err := os.Lstat(filepath.Join(at, name)); err != nil || !info.IsDir() || info.Mode().Perm() != 0o755 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if to, err := os.Readlink(filepath.Join(at, "bin")); err != nil || to != "usr/bin" {
		t.Errorf("bin: %q, %v", to, err)
	}
	if info, err := os.Lstat(filepath.Join(at, "var/lib/new/file")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the file's place: %v, %v", info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(at), ".root-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for n := range maxMirrored + 1 {
		write(filepath.Join("srv", "f"+string(rune('a'+n%26))+strings.Repeat("x", n/26)))
	}
	if _, err := planSkeleton(root, shown(true, "/srv/data")); err == nil || !strings.Contains(err.Error(), "choose another place") {
		t.Errorf("beside too many files: %v", err)
	}
}
