package e2e

import (
	"archive/tar"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/rootfstest"
)

// distroless gives a tar of what Python itself needs of an image: no shell, no
// tools, no /etc, no users. The interpreter is at exe in it.
func distroless(t *testing.T, h *host, version string) (file, exe string) {
	t.Helper()
	e, ref := h.ownState(t), "oci:"+rootfstest.Layout(t, version)
	h.must(t, e, "images", "pull", "--no-compile", ref)
	image := h.inspect(t, e, ref)
	file = filepath.Join(t.TempDir(), "distroless.tar")
	script := `cd "$1" || exit
for f in lib lib64 usr/lib usr/lib64 usr/bin/python3* usr/local/bin/python3* usr/local/lib; do
	if [ -e "$f" ] || [ -L "$f" ]; then set -- "$@" "$f"; fi
done
file=$2 && shift 2
tar --exclude='perl*' --exclude=gconv --exclude=systemd --exclude=__pycache__ -cf "$file" "$@"`
	if out, err := exec.Command("/bin/sh", "-c", script, "sh", image["dir"].(string), file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h.must(t, e, "images", "rm", ref)
	return file, image["python"].(string)
}

func all(*tar.Header) bool { return true }

// TestAnyPython runs on images that have their Python elsewhere, by another
// name, or hardly anything beside it.
func TestAnyPython(t *testing.T) {
	t.Parallel()
	versions := []string{"minimal"}
	if os.Getenv("TOOLCELL_TEST_PYTHONS") != "" {
		versions, _ = pythons()
	}
	h := firstHost(t)
	for _, v := range versions {
		t.Run(v, func(t *testing.T) { testAnyPython(t, h, v) })
	}
}

func testAnyPython(t *testing.T, h *host, version string) {
	userland, exe := distroless(t, h, version)
	folder, prefix := path.Dir(exe), path.Dir(path.Dir(exe))
	real := path.Join(folder, "python"+numbered(version))
	rename := func(from, to string) func(*tar.Header) bool {
		return func(hdr *tar.Header) bool {
			name := path.Clean("/" + hdr.Name)
			if name == exe {
				return false // a symlink to the versioned name
			}
			if name == from {
				hdr.Name = to
			}
			return true
		}
	}
	for name, c := range map[string]struct {
		env    []string
		change func(*tar.Header) bool
		exe    string
	}{
		"distroless":            {[]string{"PATH=" + folder}, all, exe},
		"without a PATH":        {nil, all, exe},
		"a versioned name only": {[]string{"PATH=" + folder}, rename("", ""), real},
		"python in a folder of the image's PATH": {
			[]string{"PATH=/nothing:/opt/science/bin:" + folder, "PYTHONHOME=" + prefix, "LD_LIBRARY_PATH=" + prefix + "/lib", "GREETING=hello"},
			rename(real, "opt/science/bin/python"), "/opt/science/bin/python",
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := h.ownState(t)
			e["TOOLCELL_IMAGE"] = "oci:" + rootfstest.Derive(t, userland, c.env, c.change)
			served := h.serve(t, e)
			served.python(t, "import sys\nfrom mcp import runtime\nassert runtime.discovered_servers() is not None\nprint(sys.executable)").want(t, c.exe)
			if len(c.env) > 1 {
				served.python(t, "import os; print(os.environ['GREETING'])").want(t, "hello")
			}
		})
	}
}

// TestImageWithoutPython: the error says so and names images with Python.
func TestImageWithoutPython(t *testing.T) {
	file := filepath.Join(t.TempDir(), "etc.tar")
	if out, err := exec.Command("tar", "-C", "/", "-cf", file, "etc/os-release", "etc/passwd").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h := firstHost(t)
	_, errs, code := h.run(t, h.ownState(t), "exec", "--image", "oci:"+rootfstest.Derive(t, file, nil, all), "-c", "print(1)")
	if code != 1 || !strings.Contains(errs, "no Python interpreter") || !strings.Contains(errs, "python:3.14-slim") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// TestMinimalPython runs on Debian's python3-minimal, which has a small part of
// the standard library.
func TestMinimalPython(t *testing.T) {
	t.Parallel()
	h := firstHost(t)
	e := h.ownState(t)
	e["TOOLCELL_IMAGE"] = "oci:" + rootfstest.Layout(t, "minimal")
	c := h.serve(t, e)
	c.python(t, "print(1); 2").want(t, "1\n2")
	if r := c.python(t, "1/0"); r.status() != "error" || !strings.Contains(r.text, "ZeroDivisionError") {
		t.Errorf("got %s", r.text)
	}
	c.python(t, "from mcp import runtime\nlen(runtime.discovered_servers())").want(t, "0")
	if r := c.python(t, "import asyncio"); r.status() != "error" || !strings.Contains(r.text, "ModuleNotFoundError") {
		t.Errorf("this Python has all of the library: %s", r.text)
	}
}
