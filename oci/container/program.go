package container

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// program returns the path from which sandboxes start this program: the file we run
// from if it still exists and every user may execute it, otherwise a copy in dir. An
// upgrade may have replaced the file, and the parts of two versions do not work
// together.
func (r *Runtime) program(dir string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := os.Stat(r.copied); r.copied != "" && err == nil {
		return r.copied, nil
	}
	running, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("finding this program's file: %w", err)
	}
	file, err := os.Stat(r.host.Exe)
	if err == nil && os.SameFile(running, file) && file.Mode().Perm()&0o005 == 0o005 {
		return r.host.Exe, nil
	}
	copied := filepath.Join(dir, "init")
	if err := copyProgram(copied); err != nil {
		return "", fmt.Errorf("copying this program for sandboxes: %w", err)
	}
	r.copied = copied
	return copied, nil
}

// copyProgram copies the program that we run from, also if its file is gone.
func copyProgram(to string) (err error) {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_CLOEXEC, 0o700)
	if err != nil {
		return err
	}
	if _, err = f.ReadFrom(from); err == nil {
		err = f.Chmod(0o755) // the sandbox's user runs it, whatever our umask is
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		os.Remove(to)
	}
	return err
}
