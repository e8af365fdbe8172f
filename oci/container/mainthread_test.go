package container

import (
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMainThreadEntersNoSandbox: a goroutine that enters the mount namespace of a sandbox
// takes its thread along, which ends with it, unless it is the main one. That would stay
// there: /proc/PID would show the sandbox's mounts, and keep them.
func TestMainThreadEntersNoSandbox(t *testing.T) {
	const many = 100 // all threads that there are, and more
	var begun, ended sync.WaitGroup
	begun.Add(many)
	for range many {
		ended.Go(func() {
			runtime.LockOSThread()
			begun.Done()
			begun.Wait()
			if unix.Gettid() == os.Getpid() {
				t.Error("a goroutine has the main thread")
			}
		})
	}
	ended.Wait()
}
