package sandboxes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/oci/spec"
)

// TestPackagesFitTheCLibraryOfTheImage: compiled parts of npm packages are for one or the other.
func TestPackagesFitTheCLibraryOfTheImage(t *testing.T) {
	for name, tt := range map[string]struct {
		file string // in the root, or below usr, which is bound
		want string
	}{
		"Debian":                {"lib/x86_64-linux-gnu/libc.so.6", "glibc"},
		"Alpine":                {"lib/ld-musl-x86_64.so.1", "musl"},
		"the host, a Debian":    {"usr/lib/libc.so.6", "glibc"},
		"the host, with merged": {"usr/lib/ld-musl-aarch64.so.1", "musl"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, tt.file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		root := spec.Root{Dir: filepath.Join(dir, "root"), Binds: []spec.Bind{{Source: filepath.Join(dir, "usr"), Target: "/usr"}}}
		if tt.file[:3] == "lib" {
			root = spec.Root{Dir: dir}
		}
		if got := libcOf(root); got != tt.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
