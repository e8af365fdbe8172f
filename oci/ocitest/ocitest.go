// Package ocitest has what tests of sandboxes share.
package ocitest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/spec"
)

// HostRoot makes a root file system from the host's own /usr.
func HostRoot(t *testing.T) spec.Root {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "root")
	for _, d := range []string{"proc", "dev", "tmp", "workspace", "run/toolcell", "usr", "etc"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/resolv.conf"), []byte("nameserver 192.0.2.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if target, err := os.Readlink("/" + name); err == nil {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return spec.Root{Dir: dir, Binds: []spec.Bind{{Source: "/usr", Target: "/usr"}}}
}

// NeedNamespaces skips the test if the host forbids user namespaces, and in a short run.
func NeedNamespaces(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts sandboxes, which a short run does not")
	}
	for _, c := range doctor.Examine(doctor.Needs{UID: 65534, GID: 65534}) {
		if c.Status == doctor.CheckFatal && (strings.HasPrefix(c.Code, "RC-USERNS") || c.Code == "RC-CAPS") {
			t.Skip(c.Text + "; cure: " + c.Cure)
		}
	}
}
