package state

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHolderIsTheProcessThatLocked, and no process once the lock is gone.
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

// TestHolderIsOfTheSameDevice: numbers of inodes are the same on many file systems.
func TestHolderIsOfTheSameDevice(t *testing.T) {
	const locks = `1: POSIX  ADVISORY  WRITE 11 00:1f:2 0 EOF
2: FLOCK  ADVISORY  WRITE 12 00:20:2 0 EOF
3: FLOCK  ADVISORY  WRITE 0 00:1f:2 0 EOF
3: -> FLOCK  ADVISORY  WRITE 13 00:1f:2 0 EOF
4: FLOCK  ADVISORY  WRITE 14 00:1f:2 0 EOF
5: FLOCK  ADVISORY  WRITE 15 fe:00:77 0 EOF
`
	for _, c := range []struct {
		major, minor uint32
		inode        uint64
		want         int
	}{{0, 0x1f, 2, 14}, {0, 0x20, 2, 12}, {0, 0x21, 2, 12}, {0xfe, 0, 77, 15}, {0, 0x1f, 7, 0}} {
		if got := holderIn(locks, c.major, c.minor, c.inode); got != c.want {
			t.Errorf("%x:%x:%d: process %d, want %d", c.major, c.minor, c.inode, got, c.want)
		}
	}
}
