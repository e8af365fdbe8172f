package main

import (
	"cmp"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// debianLess asks dpkg, which other systems do not have.
func debianLess(t *testing.T, a, b string) bool {
	t.Helper()
	return says(t, exec.Command("dpkg", "--compare-versions", a, "lt", b))
}

// pythonLess asks the library that pip brings along.
func pythonLess(t *testing.T, a, b string) bool {
	t.Helper()
	if exec.Command("python3", "-c", "import pip._vendor.packaging.version").Run() != nil {
		return true
	}
	const code = "import sys; from pip._vendor.packaging.version import Version as V; sys.exit(not V(sys.argv[1]) < V(sys.argv[2]))"
	return says(t, exec.Command("python3", "-c", code, a, b))
}

// says reports whether a program answers yes. It does so also where there is no such program.
func says(t *testing.T, c *exec.Cmd) bool {
	t.Helper()
	out, err := c.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return true
	}
	if len(out) > 0 {
		t.Errorf("%q says %s", c.Args, out)
	}
	return err == nil
}

// semverLess compares as https://semver.org says, item 11.
func semverLess(a, b string) bool {
	a, preA, _ := strings.Cut(a, "-")
	b, preB, _ := strings.Cut(b, "-")
	if c := compareParts(a, b); c != 0 {
		return c < 0
	}
	if preA == "" || preB == "" {
		return preA != "" && preB == ""
	}
	return compareParts(preA, preB) < 0
}

func compareParts(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		x, errX := strconv.Atoi(as[i])
		y, errY := strconv.Atoi(bs[i])
		c := strings.Compare(as[i], bs[i])
		switch {
		case errX == nil && errY == nil:
			c = cmp.Compare(x, y)
		case errX == nil || errY == nil:
			c = map[bool]int{true: -1, false: 1}[errX == nil]
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}
