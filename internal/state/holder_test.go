package state

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHolderIsTheProcessThatLocked, and nobody once the lock is gone.
func TestHolderIsTheProcessThatLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if pid := Holder(path); pid != 0 {
		t.Errorf("process %d holds a file that is not there", pid)
	}
	f, err := TryLock(path, os.O_CREATE, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/locks"); err != nil {
		t.Skip("this kernel does not tell:", err)
	}
	if pid := Holder(path); pid != os.Getpid() {
		t.Errorf("process %d holds it, want %d", pid, os.Getpid())
	}
	f.Close()
	if pid := Holder(path); pid != 0 {
		t.Errorf("process %d holds it after its end", pid)
	}
}
