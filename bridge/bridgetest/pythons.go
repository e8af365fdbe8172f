// Package bridgetest finds the Pythons of this machine for tests.
package bridgetest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Python is an interpreter of this machine.
type Python struct {
	Path  string
	Minor int // its version is 3.Minor
}

// pythons finds one interpreter of each minor version from 3.10 on. A command in
// TOOLCELL_TEST_RUNNER_PYTHON is the only one.
var pythons = sync.OnceValue(func() []Python {
	if name := os.Getenv("TOOLCELL_TEST_RUNNER_PYTHON"); name != "" {
		out, err := exec.Command(name, "-c", "import sys; print(sys.version_info[1])").CombinedOutput()
		minor, notNumber := strconv.Atoi(strings.TrimSpace(string(out)))
		if err := errors.Join(err, notNumber); err != nil {
			panic(fmt.Sprintf("%s: %v: %s", name, err, out))
		}
		return []Python{{name, minor}}
	}
	names := []string{"python3", "/usr/bin/python3"}
	for minor := 10; minor <= 14; minor++ {
		names = append(names, fmt.Sprintf("python3.%d", minor))
	}
	if home, err := os.UserHomeDir(); err == nil {
		more, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/*/bin/python3"))
		names = append(names, more...)
	}
	byMinor := map[int]Python{}
	for _, name := range names {
		out, err := exec.Command(name, "-c", "import sys; print(*sys.version_info[:2], sys.executable)").Output()
		f := strings.Fields(string(out))
		if err != nil || len(f) != 3 || f[0] != "3" {
			continue // a shim without a version behind it, or Python 2
		}
		if minor, _ := strconv.Atoi(f[1]); minor >= 10 {
			byMinor[minor] = Python{f[2], minor}
		}
	}
	var found []Python
	for _, p := range byMinor {
		found = append(found, p)
	}
	slices.SortFunc(found, func(a, b Python) int { return a.Minor - b.Minor })
	return found
})

// Pythons returns the Pythons of this machine from 3.10 on, one of each minor
// version, oldest first; with -short, only the newest. Without any, it skips the
// test.
func Pythons(t *testing.T) []Python {
	t.Helper()
	found := pythons()
	if len(found) == 0 {
		t.Skip("no Python from 3.10 on was found: apt-get install python3")
	}
	if testing.Short() {
		found = found[len(found)-1:]
	}
	return found
}

// EachPython runs a test with all Pythons, in parallel.
func EachPython(t *testing.T, test func(t *testing.T, py Python)) {
	t.Helper()
	for _, py := range Pythons(t) {
		t.Run(fmt.Sprintf("3.%d", py.Minor), func(t *testing.T) {
			t.Parallel()
			test(t, py)
		})
	}
}
