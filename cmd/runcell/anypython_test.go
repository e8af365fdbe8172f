package main

import (
	"archive/tar"
	"path"
	"strings"
	"testing"

	"github.com/runcell/runcell/rootfs/rootfstest"
)

// distroless keeps of a Debian userland what Python itself needs: no shell, no
// tools, no /etc, no users.
func distroless(hdr *tar.Header) bool {
	name := path.Clean("/" + hdr.Name)
	for _, keep := range []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/bin/python3"} {
		if name == keep || strings.HasPrefix(name, keep+"/") || strings.HasPrefix(name, "/usr/bin/python3") {
			return true
		}
	}
	return false
}

// TestAnyPython runs on images that have their Python elsewhere, by another
// name, or hardly anything beside it.
func TestAnyPython(t *testing.T) {
	_, v := pythons()
	layout := rootfstest.Layout(t, v)
	rename := func(from, to string) func(*tar.Header) bool {
		return func(hdr *tar.Header) bool {
			name := path.Clean("/" + hdr.Name)
			if name == "/usr/bin/python3" {
				return false // a symlink to the versioned name
			}
			if name == from {
				hdr.Name = to
			}
			return distroless(hdr) || hdr.Name == to
		}
	}
	for name, c := range map[string]struct {
		env    []string
		change func(*tar.Header) bool
		exe    string
	}{
		"distroless":            {[]string{"PATH=/usr/bin"}, distroless, "/usr/bin/python3"},
		"without a PATH":        {nil, distroless, "/usr/bin/python3"},
		"a versioned name only": {[]string{"PATH=/usr/bin"}, rename("", ""), "/usr/bin/python" + v},
		"python in a folder of the image's PATH": {
			[]string{"PATH=/nothing:/opt/science/bin:/usr/bin", "PYTHONHOME=/usr", "GREETING=hello"},
			rename("/usr/bin/python"+v, "opt/science/bin/python"), "/opt/science/bin/python",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := firstHost(t)
			e := h.ownState(t)
			e["MCP_BRIDGE_IMAGE"] = "oci:" + rootfstest.Derive(t, layout, c.env, c.change)
			served := h.serve(t, e)
			served.python(t, "import asyncio, sys\nawait asyncio.sleep(0)\nfrom mcp import runtime\nassert runtime.discovered_servers() is not None\nprint(sys.executable)").want(t, c.exe)
			if len(c.env) == 3 {
				served.python(t, "import os; print(os.environ['GREETING'])").want(t, "hello")
			}
		})
	}
}

// TestImageWithoutPython says so, and which images have one.
func TestImageWithoutPython(t *testing.T) {
	_, v := pythons()
	dir := rootfstest.Derive(t, rootfstest.Layout(t, v), nil, func(hdr *tar.Header) bool {
		return !strings.Contains(path.Base(hdr.Name), "python")
	})
	h := firstHost(t)
	_, errs, code := h.run(t, h.ownState(t), "exec", "--image", "oci:"+dir, "-c", "print(1)")
	if code != 1 || !strings.Contains(errs, "no Python interpreter") || !strings.Contains(errs, "python:3.14-slim") {
		t.Errorf("exit %d\n%s", code, errs)
	}
}

// TestMinimalPython runs on Debian's python3-minimal, which has a small part of
// the standard library.
func TestMinimalPython(t *testing.T) {
	h := firstHost(t)
	e := h.ownState(t)
	e["MCP_BRIDGE_IMAGE"] = "oci:" + rootfstest.Layout(t, "minimal")
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
