// Package rootfstest gives tests a real registry on a loopback port, and the
// images that .ci/images.sh builds.
package rootfstest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Images returns the directory of the images that .ci/images.sh has built, or
// skips the test.
func Images(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("TOOLCELL_TEST_IMAGES")
	if dir == "" {
		t.Skip("needs real images: run `.ci/images.sh DIR` and set TOOLCELL_TEST_IMAGES=DIR")
	}
	return dir
}

// Layout returns the OCI layout of one Python version, or skips the test.
func Layout(t testing.TB, version string) string {
	t.Helper()
	dir := filepath.Join(Images(t), "python-"+version)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("needs an image of Python %[1]s: run `.ci/images.sh DIR %[1]s` and set TOOLCELL_TEST_IMAGES=DIR", version)
	}
	return dir
}

// StartRegistry starts Debian's docker-registry until the end of the test and
// returns its host:port. It asks for the password if a user is given. The test
// is skipped if the program is not installed.
func StartRegistry(t testing.TB, user, pass string) (host string) {
	t.Helper()
	dir, addr := t.TempDir(), freeAddr(t)
	config := fmt.Sprintf("http: {addr: %q}\n", addr)
	if user != "" {
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %q}}\n", htpasswd(t, dir, user, pass))
	}
	runRegistry(t, config, "http://"+addr+"/v2/", http.DefaultTransport)
	return addr
}

// runRegistry starts docker-registry until the end of the test, and waits until
// it answers at the URL.
func runRegistry(t testing.TB, config, url string, rt http.RoundTripper) {
	t.Helper()
	exe, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("needs docker-registry: apt install docker-registry")
	}
	dir := t.TempDir()
	config = fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %q}}\n", filepath.Join(dir, "data")) + config
	file := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(exe, "serve", file)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("docker-registry: %s", log.String())
		}
	})
	waitReady(t, url, rt, ended)
}

// freeAddr returns a loopback address that nobody listens on.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// htpasswd writes a password file with bcrypt, the only kind the registry takes.
func htpasswd(t testing.TB, dir, user, pass string) string {
	t.Helper()
	if _, err := exec.LookPath("htpasswd"); err != nil {
		t.Skip("needs htpasswd: apt install apache2-utils")
	}
	line, err := exec.Command("htpasswd", "-Bbn", user, pass).Output()
	if err != nil {
		t.Fatalf("htpasswd: %v", err)
	}
	file := filepath.Join(dir, "htpasswd")
	if err := os.WriteFile(file, line, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// waitReady waits until a server answers, whatever its answer is.
func waitReady(t testing.TB, url string, rt http.RoundTripper, ended <-chan struct{}) {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: rt}
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); {
		resp, err := client.Get(url)
		if err == nil {
			resp.Body.Close()
			return
		}
		select {
		case <-ended:
			t.Fatal("docker-registry has ended by itself")
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Fatal("docker-registry does not answer")
}

// PushLayout pushes the only image of a layout to ref, with the credentials of
// the user's Docker configuration if there are any.
func PushLayout(t testing.TB, layoutDir, ref string) {
	t.Helper()
	push(t, layoutDir, ref, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// PushLayoutAs is PushLayout with a password.
func PushLayoutAs(t testing.TB, layoutDir, ref, user, pass string) {
	t.Helper()
	push(t, layoutDir, ref, remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: user, Password: pass})))
}

func push(t testing.TB, layoutDir, ref string, how ...remote.Option) {
	t.Helper()
	r, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(layoutDir)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Manifests) != 1 {
		t.Fatalf("%s has %d images", layoutDir, len(m.Manifests))
	}
	img, err := index.Image(m.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	// docker-registry writes the links to blobs in place: while another push goes
	// on, it may read an empty one and take the blob for missing.
	for attempt := 1; ; attempt++ {
		err := remote.Write(r, img, how...)
		if err == nil {
			return
		}
		if attempt == 5 {
			t.Fatalf("pushing %s: %v", ref, err)
		}
		t.Logf("pushing %s again: %v", ref, err)
		time.Sleep(100 * time.Millisecond)
	}
}

// DockerConfig writes a Docker configuration with a password for a registry,
// and makes it the one in use until the end of the test.
func DockerConfig(t testing.TB, host, user, pass string) {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf(`{"auths": {%q: {"username": %q, "password": %q}}}`, host, user, pass)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
}
