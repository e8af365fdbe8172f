package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// Host is an interpreter of the host.
type Host struct {
	Exe  string   // absolute path
	Dirs []string // that it needs in addition to /usr
}

// FindOnHost finds the host's interpreter: the system's own, or else the one that `python3`
// in the user's PATH starts. The host's root directory is sys: "/" except in tests.
func FindOnHost(ctx context.Context, sys string) (Host, error) {
	for _, name := range append([]string{"python3"}, numbered()...) { // a system may have a newer one beside its own
		for _, dir := range []string{"/usr/bin", "/usr/local/bin"} {
			if exe := filepath.Join(dir, name); isSystemPython(sys, exe) {
				return Host{Exe: exe}, nil
			}
		}
	}
	exe, err := exec.LookPath("python3")
	if err != nil {
		return Host{}, fmt.Errorf("this host has no python3 of version 3.%d or newer: install it, for example with: apt install python3", OldestMinor)
	}
	report, err := askInterpreter(ctx, exe)
	if err != nil {
		return Host{}, fmt.Errorf("asking %q what it needs: %w; install a working one, for example with: apt install python3", exe, err)
	}
	return report.toHost()
}

// isSystemPython reports whether a path in /usr leads to an interpreter in /usr that is recent
// enough.
func isSystemPython(sys, exe string) bool {
	real, err := filepath.EvalSymlinks(filepath.Join(sys, exe))
	if err != nil || !rootdir.Within(real, filepath.Join(sys, "usr")) {
		return false
	}
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return false
	}
	return !tooOld(filepath.Base(real))
}

// selfReport is an interpreter's description of itself.
type selfReport struct {
	Executable string `json:"executable"`
	Prefix     string `json:"prefix"`
	BasePrefix string `json:"base_prefix"`
	Minor      int    `json:"minor"`
}

const selfReportScript = `import json, sys; print(json.dumps({"executable": sys.executable, "prefix": sys.prefix, ` +
	`"base_prefix": sys.base_prefix, "minor": sys.version_info[1]}))`

// askInterpreter runs an interpreter, isolated from the user's settings. It may be a version
// manager's shim, which starts another one.
func askInterpreter(ctx context.Context, exe string) (*selfReport, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-I", "-c", selfReportScript)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	var r selfReport
	if err := json.Unmarshal(bytes.TrimSpace(out), &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// toHost refuses an interpreter that is too old or whose directories a sandbox must not see.
func (r *selfReport) toHost() (Host, error) {
	if r.Minor < OldestMinor {
		return Host{}, fmt.Errorf("%q is Python 3.%d, and 3.%d or newer is needed: install it, for example with: apt install python3", r.Executable, r.Minor, OldestMinor)
	}
	if !filepath.IsAbs(r.Executable) {
		return Host{}, errors.New("the interpreter does not know its own path")
	}
	h := Host{Exe: r.Executable}
	// The executable may be a symlink into another tree.
	real, err := filepath.EvalSymlinks(r.Executable)
	if err != nil {
		return Host{}, err
	}
	for _, dir := range []string{r.BasePrefix, r.Prefix, filepath.Dir(real), filepath.Dir(r.Executable)} {
		dir = filepath.Clean(dir)
		covered := slices.ContainsFunc(h.Dirs, func(above string) bool { return rootdir.Within(dir, above) })
		if !filepath.IsAbs(dir) || rootdir.Within(dir, "/usr") || covered {
			continue
		}
		if err := refusePrivate(dir); err != nil {
			return Host{}, err
		}
		h.Dirs = append(h.Dirs, dir)
	}
	return h, nil
}

// refusePrivate refuses to show the code whole home directories, or the whole disk, only
// because an interpreter is installed there.
func refusePrivate(dir string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	dirs := withReal(dir)
	for _, private := range withReal(home, filepath.Join(home, ".local"), "/home", "/root", "/etc", "/var", "/tmp") {
		if slices.ContainsFunc(dirs, func(dir string) bool { return rootdir.Within(private, dir) }) {
			return fmt.Errorf("the files of python3 are in %q, which holds much else that the sandbox must not see; install another one, for example with: apt install python3", dir)
		}
	}
	for _, mount := range []string{"/proc", "/dev", "/tmp", "/workspace", "/run/toolcell"} {
		if slices.ContainsFunc(dirs, func(dir string) bool { return rootdir.Within(dir, mount) }) {
			return fmt.Errorf("the files of python3 are in %q, and a sandbox has a %s of its own; install another one, for example with: apt install python3", dir, mount)
		}
	}
	return nil
}

// withReal adds the real paths of those that exist.
func withReal(dirs ...string) []string {
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			dirs = append(dirs, real)
		}
	}
	return dirs
}
