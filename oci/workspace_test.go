package oci

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWorkspaceOutlivesTheSandbox that is killed: what was written before can
// be read, and nothing above it.
func TestWorkspaceOutlivesTheSandbox(t *testing.T) {
	r := openRuntime(t)
	var workspace *os.File
	p := Process{
		Control: func(c net.Conn) { c.Close() },
		Workspace: func(dir *os.File, err error) {
			if err != nil {
				t.Error(err)
			}
			workspace = dir
		},
	}
	_, exit := sh(t.Context(), t, r, p, "echo kept >/workspace/file; kill -9 $$")
	if workspace == nil || exit.Code != 137 {
		t.Fatalf("no workspace; exit %+v", exit)
	}
	defer workspace.Close()
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
