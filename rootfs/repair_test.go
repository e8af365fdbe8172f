package rootfs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRepairKeepsWhatItCannotReplace: without its registry an image is made anew
// from its layers. If one of those is damaged too, all stays as it was.
func TestRepairKeepsWhatItCannotReplace(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t, pack(t, file("kept", "content"), file("gone", "content"))))
	root := ensureAll(t, s, ref)[0]
	image, err := s.Find(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil { // the image is not in use any more
		t.Fatal(err)
	}
	reg.stop()

	kept, gone := filepath.Join(root.Dir, "kept"), filepath.Join(root.Dir, "gone")
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if source, err := s.Repair(ctx, image); err != nil || source != "" {
		t.Fatalf("from its layers: %q, %v", source, err)
	}
	if damage, err := s.Verify(ctx, image); err != nil || len(damage) != 0 {
		t.Errorf("after the repair: %q, %v", damage, err)
	}

	if err := os.WriteFile(kept, []byte("CONTENT"), 0o644); err != nil { // and so the layer's
		t.Fatal(err)
	}
	if _, err := s.Repair(ctx, image); err == nil || !strings.Contains(err.Error(), "fetching its damaged layers again") {
		t.Errorf("without a registry: %v", err)
	}
	if got, err := os.ReadFile(gone); err != nil || string(got) != "content" || s.Cached(ctx, ref) == nil {
		t.Errorf("the image was lost: %q, %v", got, err)
	}
	if _, err := s.Repair(ctx, image); !errors.Is(err, ErrInUse) {
		t.Errorf("in use: %v", err)
	}
	if l := leftovers(t, s); len(l) != 0 {
		t.Errorf("leftovers: %q", l)
	}
}

// TestRepairFetchesTheSameImage, though its tag means another one by now.
func TestRepairFetchesTheSameImage(t *testing.T) {
	reg, s := newRegistry(t), openStore(t)
	ref := reg.push(t, "py:3", pythonImage(t, pack(t, file("f", "one"))))
	root := ensureAll(t, s, ref)[0]
	image, err := s.Find(ref)
	if err != nil {
		t.Fatal(err)
	}
	reg.push(t, "py:3", pythonImage(t, pack(t, file("f", "two"))))
	if err := errors.Join(s.Close(), os.WriteFile(filepath.Join(root.Dir, "f"), []byte("bad"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if source, err := s.Repair(ctx, image); err != nil || source != ref {
		t.Fatalf("%q, %v", source, err)
	}
	if got, err := os.ReadFile(filepath.Join(root.Dir, "f")); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
}
