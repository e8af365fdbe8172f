package oci

import (
	"testing"

	"github.com/toolcell/toolcell/oci/ocitest"
	"golang.org/x/sys/unix"
)

// TestWorkspaceOutlivesTheSandbox that is killed: what was written before can
// be read, and nothing above it.
func TestWorkspaceOutlivesTheSandbox(t *testing.T) {
	sb, err := openRuntime(t).Start(t.Context(), Process{
		Root: ocitest.HostRoot(t), Control: true,
		Args: []string{"/bin/sh", "-c", "echo kept >/workspace/file; kill -9 $$"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	exit, err := sb.Wait()
	workspace := sb.Workspace()
	if workspace == nil || err != nil || exit.Code != 137 {
		t.Fatalf("no workspace; exit %+v, %v", exit, err)
	}
	fd, err := unix.Openat(int(workspace.Fd()), "file", unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	b := make([]byte, 16)
	if n, err := unix.Read(fd, b); err != nil || string(b[:n]) != "kept\n" {
		t.Errorf("read %q, %v", b[:n], err)
	}
	var above, own unix.Stat_t
	if err := unix.Fstatat(int(workspace.Fd()), "..", &above, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fstat(int(workspace.Fd()), &own); err != nil || above.Ino != own.Ino || above.Dev != own.Dev {
		t.Errorf("there is something above it: %v", err)
	}
}
