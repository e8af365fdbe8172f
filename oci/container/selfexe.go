package container

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// programFile returns exe, this program's file, or a copy of it in dir if the file has been
// replaced or not every user may execute it. After an upgrade, the parts of two versions
// would not fit together.
func programFile(exe, dir string) (path string, err error) {
	running, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("finding this program's file: %w", err)
	}
	file, err := os.Stat(exe)
	if err == nil && os.SameFile(running, file) && file.Mode().Perm()&0o005 == 0o005 {
		return exe, nil
	}
	copied := filepath.Join(dir, "init")
	if err := copyProgram(copied); err != nil {
		return "", fmt.Errorf("copying this program for sandboxes: %w", err)
	}
	return copied, nil
}

// copyProgram copies the running program, even if its file is gone.
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
	_, err = f.ReadFrom(from)
	// The sandbox's user runs it, whatever our umask is.
	if err = errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		os.Remove(to)
	}
	return err
}
