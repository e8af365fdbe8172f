package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// realVersions are the Pythons that the end-to-end tests run on.
var realVersions = []string{"3.14", "3.13", "3.11"}

// TestRealImages pulls real Debian userlands from a real registry.
func TestRealImages(t *testing.T) {
	rootfstest.Images(t)
	host := rootfstest.StartRegistry(t, "", "")
	for _, version := range realVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir := rootfstest.Layout(t, version)
			ref := host + "/python:" + version
			rootfstest.PushLayout(t, dir, ref)
			s := openStore(t)
			root, err := s.Ensure(ctx, ref, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkDebian(t, root, version)
			local, err := s.Ensure(ctx, "oci:"+dir, nil)
			if err != nil || local.Dir != root.Dir {
				t.Errorf("the layout and the registry give two roots: %v", err)
			}
		})
	}
}

func checkDebian(t *testing.T, root *Root, version string) {
	t.Helper()
	if root.Python != "/usr/bin/python3" {
		t.Errorf("Python is %q", root.Python)
	}
	path := func(name string) string { return filepath.Join(root.Dir, name) }
	for link, want := range map[string]string{"usr/bin/python3": "python" + version, "bin": "usr/bin"} {
		if got, err := os.Readlink(path(link)); err != nil || got != want {
			t.Errorf("%s leads to %q, want %q: %v", link, got, want, err)
		}
	}
	// Debian's perl is a hard link, su is setuid, and the last layer deletes.
	perls, _ := filepath.Glob(path("usr/bin/perl5*"))
	perl, err := os.Stat(path("usr/bin/perl"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(perls, func(p string) bool {
		other, err := os.Stat(p)
		return err == nil && os.SameFile(perl, other)
	}) {
		t.Errorf("none of %q is the hard link of perl", perls)
	}
	for _, gone := range []string{"usr/share/doc", "usr/share/man", "var/cache/apt", "var/cache/debconf"} {
		if _, err := os.Lstat(path(gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s should be deleted: %v", gone, err)
		}
	}
	if su, err := os.Stat(path("usr/bin/su")); err != nil || su.Mode() != 0o755 {
		t.Errorf("su is %v, %v", su, err)
	}
	err = filepath.WalkDir(root.Dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				return fs.SkipDir
			}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeDevice|fs.ModeNamedPipe) != 0 {
			t.Errorf("%s has mode %s", p, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRealRegistryWithPassword(t *testing.T) {
	host := rootfstest.StartRegistry(t, "ada", "secret")
	ref := host + "/private/python:3.11"
	rootfstest.PushLayoutAs(t, smallLayout(t), ref, "ada", "secret")

	s := openStore(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	_, err := s.Ensure(ctx, ref, nil)
	if err == nil || !strings.Contains(err.Error(), "refused access") || errors.Is(err, images.ErrUnavailable) {
		t.Errorf("without a password: %v", err)
	}
	rootfstest.DockerConfig(t, host, "ada", "wrong")
	if _, err = s.Ensure(ctx, ref, nil); err == nil || !strings.Contains(err.Error(), "refused access") {
		t.Errorf("with a wrong password: %v", err)
	}
	rootfstest.DockerConfig(t, host, "ada", "secret")
	if _, err := s.Ensure(ctx, ref, nil); err != nil {
		t.Errorf("with the password: %v", err)
	}
	if _, err := s.Ensure(ctx, host+"/private/python:none", nil); err == nil || !strings.Contains(err.Error(), "no such image") {
		t.Errorf("a tag that does not exist: %v", err)
	}
}

// smallLayout is a layout of the least image.
func smallLayout(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	lay, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := lay.AppendImage(pythonImage(t)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRealRegistryWithTLSAndTokens pulls as from Docker Hub: over TLS, with a
// token that another server gives.
func TestRealRegistryWithTLSAndTokens(t *testing.T) {
	ca := rootfstest.NewAuthority(t)
	host := ca.StartTLSRegistry(t, "ada", "secret")
	ref := host + "/team/python:3"
	ca.PushLayout(t, smallLayout(t), ref, "ada", "secret")
	s := openStore(t)
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	if _, err := s.Ensure(ctx, ref, nil); err == nil || !strings.Contains(err.Error(), "an unknown authority") {
		t.Errorf("without the CA: %v", err)
	}
	s.puller.CAFile = ca.File
	if _, err := s.Ensure(ctx, ref, nil); err == nil || !strings.Contains(err.Error(), "refused access") {
		t.Errorf("without a password: %v", err)
	}
	rootfstest.DockerConfig(t, host, "ada", "wrong")
	if _, err := s.Ensure(ctx, ref, nil); err == nil || !strings.Contains(err.Error(), "refused access") || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong password: %v", err)
	}
	rootfstest.DockerConfig(t, host, "ada", "secret")
	if _, err := s.Ensure(ctx, ref, nil); err != nil {
		t.Errorf("with the password: %v", err)
	}
}

// TestProxy pulls from a host that only a proxy knows, and not through it where
// NO_PROXY says so. Package net/http reads the environment once, so each pull
// is a process.
func TestProxy(t *testing.T) {
	ca := rootfstest.NewAuthority(t)
	host := ca.StartTLSRegistry(t, "ada", "secret")
	ca.PushLayout(t, smallLayout(t), host+"/python:3", "ada", "secret")
	proxy, used := rootfstest.Proxy(t, host)
	rootfstest.DockerConfig(t, "registry.test", "ada", "secret")
	pull := func(env ...string) (string, error) {
		cmd := helperCommand(t, filepath.Join(t.TempDir(), "store"), "registry.test/python:3")
		cmd.Env = append(append(cmd.Env, "ROOTFS_TEST_CA="+ca.File), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := pull("HTTPS_PROXY=" + proxy); err != nil || used() == 0 {
		t.Errorf("through the proxy, used %d times: %v: %s", used(), err, out)
	}
	before := used()
	if out, err := pull("HTTPS_PROXY="+proxy, "NO_PROXY=registry.test"); err == nil || used() != before || !strings.Contains(out, "cannot reach registry.test (") {
		t.Errorf("past the proxy, used %d times: %v: %s", used()-before, err, out)
	}
}
