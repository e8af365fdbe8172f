package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVerifyFindsDamage(t *testing.T) {
	reg := newRegistry(t)
	layer := pack(t, dir("d"), file("d/f", "content"), symlink("d/l", "f"), hardlink("d/h", "d/f"), file("closed", "x"), dir("d/__pycache__"), file("d/__pycache__/old.pyc", "x"))
	ref := reg.push(t, "py:3", pythonImage(t, layer))
	for name, c := range map[string]struct {
		damage func(root, layers string) error
		want   string
	}{
		"nothing": {func(string, string) error { return nil }, ""},
		"a changed file": {func(root, _ string) error {
			return os.WriteFile(filepath.Join(root, "d/f"), []byte("CONTENT"), 0o644)
		}, `"d/f": its content has changed`},
		"a replaced file": {func(root, _ string) error {
			f := filepath.Join(root, "d/f")
			return errors.Join(os.Remove(f), os.WriteFile(f, []byte("other"), 0o644))
		}, `"d/f": its content has changed`},
		"a removed file":   {func(root, _ string) error { return os.Remove(filepath.Join(root, "d/f")) }, "d/f: no such file"},
		"another mode":     {func(root, _ string) error { return os.Chmod(filepath.Join(root, "d"), 0o700) }, `"d": is drwx------`},
		"a directory gone": {func(root, _ string) error { return os.RemoveAll(filepath.Join(root, "d")) }, "d: no such file"},
		"another link": {func(root, _ string) error {
			l := filepath.Join(root, "d/l")
			return errors.Join(os.Remove(l), os.Symlink("/etc/passwd", l))
		}, "should lead to"},
		"a file more": {func(root, _ string) error { return os.WriteFile(filepath.Join(root, "d/x"), nil, 0o644) }, `"d/x": is not of the image`},
		"bytecode more": {func(root, _ string) error {
			return os.WriteFile(filepath.Join(root, "d/__pycache__/x.pyc"), nil, 0o644)
		}, "is not of the image"},
		"a layer gone":    {func(_, layers string) error { return truncateAll(layers, "layer.json") }, "is gone"},
		"a layer's index": {func(_, layers string) error { return truncateAll(layers, "entries") }, "layer sha256:"},
		"a root gone":     {func(root, _ string) error { return os.RemoveAll(root) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			root := ensureAll(t, s, ref)[0]
			image, err := s.Find(ref)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.damage(root.Dir, s.layers.dir); err != nil {
				t.Fatal(err)
			}
			damage, err := s.Verify(ctx, image)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(damage, "\n"); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if l := leftovers(t, s); len(l) != 0 {
				t.Errorf("leftovers: %q", l)
			}
			if c.want == "" {
				return
			}
			// What is a link to a layer's content is damaged there too.
			source, err := s.Repair(ctx, image)
			if inLayer := strings.HasPrefix(name, "a layer") || name == "a changed file"; err != nil || (source == ref) != inLayer {
				t.Fatalf("repaired from %q, %v", source, err)
			}
			if damage, err := s.Verify(ctx, image); err != nil || len(damage) != 0 {
				t.Errorf("after the repair: %q, %v", damage, err)
			}
		})
	}
}

func truncateAll(dir, name string) error {
	found, err := filepath.Glob(filepath.Join(dir, "*", name))
	for _, f := range found {
		info, statErr := os.Stat(f)
		err = errors.Join(err, statErr)
		if statErr == nil {
			err = errors.Join(err, os.Truncate(f, info.Size()/2))
		}
	}
	return err
}

func TestVerifyKnowsTheBytecodeThatWasAdded(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t, pack(t, file("lib/m.py", "x = 1"), dir("lib/__pycache__"), file("lib/__pycache__/m.pyc", "stale"), file("lib/other.py", ""))))
	root := ensureAll(t, s, ref)[0]
	if err := root.AddBytecode(ctx, frames("/lib/__pycache__/m.pyc", bytecode, "/lib/__pycache__/other.pyc", bytecode)); err != nil {
		t.Fatal(err)
	}
	image, err := s.Find(ref)
	if err != nil {
		t.Fatal(err)
	}
	if damage, err := s.Verify(ctx, image); err != nil || len(damage) != 0 {
		t.Errorf("got %q, %v", damage, err)
	}
	if err := os.WriteFile(filepath.Join(root.Dir, "lib/__pycache__/m.pyc"), []byte("evil"), 0o644); err != nil {
		t.Fatal(err)
	}
	if damage, err := s.Verify(ctx, image); err != nil || len(damage) != 1 || !strings.Contains(damage[0], "m.pyc") {
		t.Errorf("got %q, %v", damage, err)
	}
}

// TestVerifyIsNotSweptAway opens the store again and again beside a Verify, as
// other processes do, which sweeps what is unfinished.
//
//test:long
func TestVerifyIsNotSweptAway(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	reg, s := newRegistry(t), openStore(t)
	entries := []entry{}
	for i := range 500 {
		entries = append(entries, file(fmt.Sprintf("d%d/f", i), "content"))
	}
	ref := reg.push(t, "py:3", pythonImage(t, pack(t, entries...)))
	ensureAll(t, s, ref)
	image, err := s.Find(ref)
	if err != nil {
		t.Fatal(err)
	}
	verified := make(chan struct{})
	go func() {
		defer close(verified)
		for range 5 {
			if damage, err := s.Verify(ctx, image); err != nil || len(damage) != 0 {
				t.Errorf("got %q, %v", damage, err)
			}
		}
	}()
	for {
		select {
		case <-verified:
			return
		default:
			if _, err := Open(s.cache.Dir, s.puller); err != nil {
				t.Error(err)
			}
		}
	}
}
