package images

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
)

// TestOwnCertificatesWithoutTheSystems: the authorities of the system cannot be read, and
// are not needed. They are read once in a process, so the test is in a process of its own.
func TestOwnCertificatesWithoutTheSystems(t *testing.T) {
	const child = "IMAGES_TEST_OWN_CA"
	if ref := os.Getenv(child); ref != "" {
		err := pullAll(Puller{CAFile: os.Getenv("IMAGES_TEST_CA_FILE"), AuthFile: os.DevNull}, ref)
		if err == nil || !strings.Contains(err.Error(), "no such image") {
			t.Errorf("got %v", err)
		}
		return
	}
	host, ca := tlsRegistry(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$")
	folder := t.TempDir() // which is no file that can be read
	cmd.Env = append(os.Environ(), child+"="+host+"/py:3", "IMAGES_TEST_CA_FILE="+ca, "SSL_CERT_FILE="+folder, "SSL_CERT_DIR="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestMissingCertificatesAreNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "ca.pem")
	err := pullAll(Puller{CAFile: missing, AuthFile: os.DevNull}, "registry.invalid/py:3")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "reading certificates: open "+missing) {
		t.Errorf("got %v", err)
	}
}

// TestCertificatesOfDockerHub are where users call it docker.io, as podman has them.
func TestCertificatesOfDockerHub(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	file := filepath.Join(home, ".config/containers/certs.d/docker.io/ca.crt")
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("no PEM"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := (Puller{}).roundTripper(name.DefaultRegistry); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}
