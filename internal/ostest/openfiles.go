package ostest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// OpenFiles returns the names of what this process has open that have part in them. A file that was
// removed still has its name (proc_pid_fd(5)).
func OpenFiles(t *testing.T, part string) (names []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(all) == 0 {
		t.Fatal("listing what is open: ", all, err)
	}
	for _, fd := range all {
		if name, err := os.Readlink(fd); err == nil && strings.Contains(name, part) {
			names = append(names, name)
		}
	}
	return names
}
