package container

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/ocitest"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// script runs a shell script in a container of e, and gives what it wrote.
func script(t *testing.T, e *Runtime, text string) string {
	t.Helper()
	h, err := e.Host()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, _, err := e.Start(spec.Process{
		Root: ocitest.HostRoot(t), Args: []string{"/bin/sh", "-c", text}, Env: []string{"PATH=/usr/bin:/bin"},
	}, Streams{Stdout: w, Stderr: w}, h)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Lifeline.Close()
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := c.Wait(); err != nil || exit.Code != 0 {
		t.Errorf("%s: exit %+v, %v", text, exit, err)
	}
	if err := c.Destroy(); err != nil {
		t.Error(err)
	}
	return string(out)
}

func newTestRuntime(t *testing.T) *Runtime {
	t.Helper()
	ocitest.NeedNamespaces(t)
	e, err := Open(filepath.Join(t.TempDir(), "run"), 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// TestStartReexecutesThisBinary: without the hook in this package the test
// binary would run its tests again in the sandbox, and print them.
func TestStartReexecutesThisBinary(t *testing.T) {
	if got := script(t, newTestRuntime(t), "echo fine"); got != "fine\n" {
		t.Errorf("got %q", got)
	}
}

// TestReplacedProgram: an upgrade replaces the file we run from, or its folder
// is taken away.
func TestReplacedProgram(t *testing.T) {
	e := newTestRuntime(t)
	if _, err := e.Host(); err != nil {
		t.Fatal(err)
	}
	e.host.Exe = filepath.Join(t.TempDir(), "another")
	for _, content := range []string{"", "#!/bin/sh\necho the other version\n"} {
		if content != "" {
			if err := os.WriteFile(e.host.Exe, []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if got := script(t, e, "echo fine"); got != "fine\n" {
			t.Errorf("got %q", got)
		}
	}
	if !strings.HasPrefix(e.copied, e.dir) {
		t.Errorf("copied to %q, want it among what is swept", e.copied)
	}
}

// TestWorkspaceOfAProgramThatEndsAtOnce: the host may come to what the program
// has left only when nothing of the sandbox is there any more.
func TestWorkspaceOfAProgramThatEndsAtOnce(t *testing.T) {
	e := newTestRuntime(t)
	h, err := e.Host()
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := e.Start(spec.Process{
		Root: ocitest.HostRoot(t), Args: []string{"/bin/sh", "-c", "echo kept >/workspace/file"}, Control: true,
	}, Streams{}, h)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Lifeline.Close()
	if exit, err := c.Wait(); err != nil || exit.Code != 0 {
		t.Fatalf("exit %+v, %v", exit, err)
	}
	if err := c.Destroy(); err != nil {
		t.Fatal(err)
	}
	control, workspace, err := c.Lifeline.Receive()
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	defer workspace.Close()
	fd, err := unix.Openat(int(workspace.Fd()), "file", unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "file")
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "kept\n" {
		t.Errorf("read %q, %v", b, err)
	}
}

// TestCgroupIsLookedAtWhileItIsRemoved, as the end of a run's time may come then: the race detector would
// see it.
func TestCgroupIsLookedAtWhileItIsRemoved(t *testing.T) {
	e := newTestRuntime(t)
	h, err := e.Host()
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := e.Start(spec.Process{Root: ocitest.HostRoot(t), Args: []string{"/bin/true"}}, Streams{}, h)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Lifeline.Close()
	if _, err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	removed, looked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		for {
			if m, err := c.Cgroup(); err == nil {
				_ = m.Path("pids")
			}
			select {
			case <-removed:
				return
			default:
			}
		}
	}()
	err = c.Destroy()
	close(removed)
	<-looked
	if err != nil {
		t.Fatal(err)
	}
}
