// Package rootfstest gives tests a real registry on a loopback port, and the
// images that .ci/images.sh builds.
package rootfstest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Images returns the directory of the images that .ci/images.sh has built. Without
// them, and in a short run, it skips the test.
func Images(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it reads real images")
	}
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
	config := fmt.Sprintf("http: {addr: %q}\n", freePort)
	if user != "" {
		config += fmt.Sprintf("auth: {htpasswd: {realm: test, path: %q}}\n", htpasswd(t, t.TempDir(), user, pass))
	}
	return runRegistry(t, config)
}

// freePort lets the kernel choose a port of the loopback address.
const freePort = "127.0.0.1:0"

// runRegistry starts docker-registry on a free port until the end of the test, and
// returns the host:port that its log tells.
func runRegistry(t testing.TB, config string) (host string) {
	t.Helper()
	exe, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("needs docker-registry: apt install docker-registry")
	}
	dir := t.TempDir()
	config = fmt.Sprintf("version: 0.1\nlog: {level: info}\nstorage: {filesystem: {rootdirectory: %q}}\n", filepath.Join(dir, "data")) + config
	file := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "serve", file)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log, listening, ended := bytes.Buffer{}, make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for r := bufio.NewReader(io.TeeReader(stderr, &log)); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				_ = cmd.Wait()
				return
			}
			if m := listeningLine.FindStringSubmatch(line); m != nil && len(listening) == 0 {
				listening <- m[1]
			}
		}
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("docker-registry: %s", log.String())
		}
	})
	select {
	case host = <-listening:
	case <-ended:
		t.Fatal("docker-registry has ended by itself")
	case <-time.After(2 * time.Minute):
		t.Fatal("docker-registry does not listen")
	}
	return host
}

// time="…" level=info msg="listening on 127.0.0.1:34235, tls" …
var listeningLine = regexp.MustCompile(`"listening on ([0-9.:]+)`)

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
