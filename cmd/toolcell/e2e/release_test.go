package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReleaseInstalls makes the release of this machine's architecture, checks
// the sums, installs the package into a root of its own, runs it there and
// removes it again. The tarball has the same program.
func TestReleaseInstalls(t *testing.T) {
	t.Parallel()
	goEnvironment(t)
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("needs dpkg: apt-get install dpkg")
	}
	dist := filepath.Join(t.TempDir(), "dist")
	shell(t, "../../..", "make release DIST="+dist)
	shell(t, dist, "sha256sum -c SHA256SUMS && test $(wc -l <SHA256SUMS) = 8")

	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/updates", "var/lib/dpkg/info", "etc/apparmor.d/abi/4.0"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	dpkg := "dpkg --root=" + root + " --log=/dev/null --force-script-chrootless "
	if os.Geteuid() != 0 {
		dpkg += "--force-not-root "
	}
	shell(t, dist, dpkg+"-i *.deb")
	got := shell(t, dist, root+"/usr/bin/toolcell version")
	if !strings.HasPrefix(got, "toolcell ") || strings.Contains(got, "devel ") {
		t.Errorf("version: %s", got)
	}
	for _, file := range []string{
		"bash-completion/completions/toolcell", "zsh/vendor-completions/_toolcell", "fish/vendor_completions.d/toolcell.fish",
		"man/man1/toolcell.1.gz", "doc/toolcell/README.md", "doc/toolcell/copyright", "doc/toolcell/third-party-licenses.gz", "doc/toolcell/docs/install.md",
	} {
		if info, err := os.Stat(filepath.Join(root, "usr/share", file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	profile := filepath.Join(root, "etc/apparmor.d/toolcell-package")
	if text := read(t, profile); !strings.Contains(text, `"/usr/bin/toolcell" flags=(unconfined)`) {
		t.Errorf("AppArmor's profile is\n%s", text)
	}
	shell(t, dist, "tar xzf *.tar.gz && cmp toolcell-*/bin/toolcell "+root+"/usr/bin/toolcell")
	shell(t, dist, dpkg+"-r toolcell")
	for _, file := range []string{filepath.Join(root, "usr/bin/toolcell"), profile} {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("after its removal: %v", err)
		}
	}
}

// TestMakeSaysWhatComesNext: which Go is needed if there is none that will do, and where
// the program is if PATH does not lead there.
func TestMakeSaysWhatComesNext(t *testing.T) {
	t.Parallel()
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "go"), []byte("#!/bin/sh\necho go version go1.19.8 linux/amd64\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{
		"! PATH=" + old + ":$PATH .ci/deps.sh build 2>&1":         "Go 1.21 or newer is needed, and this is go1.19.8 linux/amd64; get it from https://go.dev/dl",
		"! PATH=/bin:/usr/bin .ci/deps.sh build 2>&1":             "Go 1.21 or newer is needed; ",
		"PATH=/usr/bin:/bin .ci/installed.sh /home/ada/bin":       `type: export PATH="/home/ada/bin:$PATH"`,
		"PATH=/home/ada/bin:/bin .ci/installed.sh /home/ada/bin":  "installed /home/ada/bin/toolcell; try: toolcell doctor",
		"PATH=/bin:/home/ada/bin/ .ci/installed.sh /home/ada/bin": "installed /home/ada/bin/toolcell; try: toolcell doctor",
		"! PATH=" + old + ":$PATH make run 2>&1":                  "Go 1.21 or newer is needed, and this is go1.19.8 linux/amd64; get it from https://go.dev/dl",
	}
	if _, err := os.Stat("/usr/local/go/bin/go"); err == nil {
		lines["! PATH="+old+":/bin:/usr/bin .ci/deps.sh build 2>&1"] = "hint: there is one in /usr/local/go: export PATH=/usr/local/go/bin:$PATH"
	}
	for line, want := range lines {
		if _, err := os.Stat("/usr/bin/go"); err == nil && strings.Contains(line, "! PATH=/bin") {
			continue // Go is found there
		}
		if got := shell(t, "../../..", line); !strings.Contains(got, want) {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// shell runs a line and gives what it prints.
func shell(t *testing.T, dir, line string) string {
	t.Helper()
	c := exec.Command("bash", "-euo", "pipefail", "-c", line)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", line, err, out)
	}
	return string(out)
}
