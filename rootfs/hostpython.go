package rootfs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// foundPython is an interpreter of the host and the directories that it needs
// beside /usr.
type foundPython struct {
	exe      string
	prefixes []string
}

// hostPython finds the host's interpreter: the system's own if there is one,
// else whatever `python3` in the user's PATH turns out to be.
func hostPython(ctx context.Context, sys string) (*foundPython, error) {
	for _, exe := range []string{"/usr/bin/python3", "/usr/local/bin/python3"} {
		if systemPython(sys, exe) {
			return &foundPython{exe: exe}, nil
		}
	}
	exe, err := exec.LookPath("python3")
	if err != nil {
		return nil, fmt.Errorf("this host has no python3 of version 3.%d or newer: install it, for example with: apt install python3", oldestMinor)
	}
	answer, err := askPython(ctx, exe)
	if err != nil {
		return nil, fmt.Errorf("asking %q what it needs: %w; install a working one, for example with: apt install python3", exe, err)
	}
	return answer.found()
}

// systemPython reports whether a path in /usr leads to an interpreter in /usr
// that is not too old.
func systemPython(sys, exe string) bool {
	real, err := filepath.EvalSymlinks(filepath.Join(sys, exe))
	if err != nil || !within(real, filepath.Join(sys, "usr")) {
		return false
	}
	info, err := os.Stat(real)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return false
	}
	n := minor(filepath.Base(real))
	return n < 0 || n >= oldestMinor
}

// pythonAnswer is what an interpreter says of itself.
type pythonAnswer struct {
	Executable string `json:"executable"`
	Prefix     string `json:"prefix"`
	BasePrefix string `json:"base_prefix"`
	Minor      int    `json:"minor"`
}

const question = `import json, sys; print(json.dumps({"executable": sys.executable, "prefix": sys.prefix, ` +
	`"base_prefix": sys.base_prefix, "minor": sys.version_info[1]}))`

// askPython runs an interpreter, isolated from the user's settings. It may be a
// shim that starts another one, as those of version managers are.
func askPython(ctx context.Context, exe string) (*pythonAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-I", "-c", question)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	var a pythonAnswer
	if err := json.Unmarshal(bytes.TrimSpace(out), &a); err != nil {
		return nil, err
	}
	return &a, nil
}

func (a *pythonAnswer) found() (*foundPython, error) {
	if a.Minor < oldestMinor {
		return nil, fmt.Errorf("%q is Python 3.%d, and 3.%d or newer is needed: install it, for example with: apt install python3", a.Executable, a.Minor, oldestMinor)
	}
	if !filepath.IsAbs(a.Executable) {
		return nil, errors.New("the interpreter does not know its own path")
	}
	f := &foundPython{exe: a.Executable}
	// The executable may be a symlink into another tree, and so may that.
	real, err := filepath.EvalSymlinks(a.Executable)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{a.BasePrefix, a.Prefix, filepath.Dir(real), filepath.Dir(a.Executable)} {
		if !filepath.IsAbs(dir) || within(dir, "/usr") || f.has(dir) {
			continue
		}
		if err := harmless(dir); err != nil {
			return nil, err
		}
		f.prefixes = append(f.prefixes, dir)
	}
	return f, nil
}

func (f *foundPython) has(dir string) bool {
	for _, p := range f.prefixes {
		if within(dir, p) {
			return true
		}
	}
	return false
}

// harmless refuses to show a whole home directory, or all of the disk, to the
// code only because an interpreter was installed right there.
func harmless(dir string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	for _, private := range []string{home, filepath.Join(home, ".local"), "/etc", "/var", "/tmp"} {
		if within(private, filepath.Clean(dir)) {
			return fmt.Errorf("the files of python3 are in %q, which holds much else that the sandbox must not see; install another one, for example with: apt install python3", dir)
		}
	}
	for _, mount := range []string{"/proc", "/dev", "/tmp", "/workspace"} {
		if within(dir, mount) {
			return fmt.Errorf("the files of python3 are in %q, and a sandbox has a %s of its own; install another one, for example with: apt install python3", dir, mount)
		}
	}
	return nil
}

// HostPython is the path of the interpreter that the image "host" would have.
func HostPython(ctx context.Context) (string, error) {
	p, err := hostPython(ctx, "/")
	if err != nil {
		return "", err
	}
	return p.exe, nil
}
