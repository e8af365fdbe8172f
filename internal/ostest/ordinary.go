// Package ostest is what tests ask of the operating system.
package ostest

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Ordinary calls f as a user to whom modes of files matter. If the tests run as root, the files are
// given to that user first. f may start no goroutines that open files: the user is the thread's
// (setfsuid(2)).
func Ordinary(t *testing.T, f func(), files ...string) {
	t.Helper()
	if os.Geteuid() == 0 {
		const nobody = 65534
		for _, file := range files {
			if err := os.Chown(file, nobody, nobody); err != nil {
				t.Skip(err)
			}
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(nobody); err != nil {
			t.Skip(err)
		}
		defer func() {
			if err := unix.Setfsuid(0); err != nil {
				t.Error(err)
			}
		}()
	}
	f()
}
