package images

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
)

func TestReferenceKnowsItsRegistry(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for ref, want := range map[string]struct {
		registry string
		pinned   bool
	}{
		"python":                       {"docker.io", false},
		"python" + digest:              {"docker.io", true},
		name.DefaultRegistry + "/py:3": {"docker.io", false},
		"localhost:5000/py":            {"localhost:5000", false},
		"ghcr.io/team/py:3" + digest:   {"ghcr.io", true},
		"oci:/srv/py":                  {"", false},
		"docker-archive:/srv/py.tar":   {"", false},
		"host":                         {"", false},
	} {
		r, err := Parse(ref)
		if err != nil || r.RegistryName() != want.registry || r.Pinned() != want.pinned {
			t.Errorf("%s: registry %q, pinned %v, %v", ref, r.RegistryName(), r.Pinned(), err)
		}
	}
}

func TestEmptyReferenceIsNamedSo(t *testing.T) {
	if _, err := Parse(""); err == nil || err.Error() != "the image reference is empty" {
		t.Errorf("got %v", err)
	}
}

// TestRelativePathWithoutAFolder: what is relative to a folder that is gone names no file.
func TestRelativePathWithoutAFolder(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if r, err := Parse("oci:py"); err == nil {
		t.Errorf("got %+v", r)
	}
	if _, err := Parse("oci:/srv/py"); err != nil {
		t.Errorf("an absolute path: %v", err)
	}
}

// TestStampOfAnArchive: only a regular file whose content cannot have changed since it was
// read has one.
func TestStampOfAnArchive(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "py.tar")
	if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) { // with a clock of its own, decades before the files
		stamp := func(ref string) string {
			t.Helper()
			r, err := Parse(ref)
			if err != nil {
				t.Fatal(err)
			}
			return r.Stamp()
		}
		if got := stamp("oci-archive:" + file); got != "" {
			t.Errorf("a file that has just changed has the stamp %s", got)
		}
		written, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(written.ModTime()) + time.Hour)
		old := stamp("oci-archive:" + file)
		if old == "" || stamp("docker-archive:"+file+":py:3") != old {
			t.Errorf("the stamp is %q", old)
		}
		for _, ref := range []string{
			"oci:" + file, "oci:" + dir, "oci-archive:" + dir, "docker-archive:" + file + ".gone", "python:3", "host",
		} {
			if got := stamp(ref); got != "" {
				t.Errorf("%s has the stamp %s", ref, got)
			}
		}
		if err := os.WriteFile(file, []byte("changed"), 0o600); err != nil {
			t.Fatal(err)
		}
		if stamp("oci-archive:"+file) == old {
			t.Error("the stamp does not change with the file")
		}
	})
}
