package oci

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"testing"

	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// helperEnv makes the test binary act as a server that runs one sandbox.
const helperEnv = "TOOLCELL_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		helper(os.Args[1], os.Args[2], os.Args[3])
		return
	}
	os.Exit(m.Run())
}

// helper runs a sandbox, which it freezes at SIGUSR1.
func helper(dir, root, marker string) {
	freeze := make(chan os.Signal, 1)
	signal.Notify(freeze, unix.SIGUSR1)
	r, err := Open(dir, 65534, 65534)
	if err == nil {
		var sb *Sandbox
		sb, err = r.Start(context.Background(), Process{
			Root: spec.Root{Dir: root, Binds: []spec.Bind{{Source: "/usr", Target: "/usr"}}},
			Args: []string{"/bin/sleep", marker},
		})
		if err == nil {
			go func() {
				<-freeze
				sb.Freeze()
			}()
			_, err = sb.Wait()
		}
	}
	fmt.Fprintln(os.Stderr, "helper:", err)
}

func startHelper(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe, args...)
	c.Env = append(os.Environ(), helperEnv+"=1")
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}
