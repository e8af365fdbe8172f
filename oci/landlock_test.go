package oci

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// TestLandlockReadsOnlyTheSandbox hands code a folder of the host, as a mistake of
// ours would (CVE-2024-21626). Only Landlock is between the two then.
func TestLandlockReadsOnlyTheSandbox(t *testing.T) {
	if host.LandlockVersion() < 2 {
		t.Skip("this kernel has no Landlock of version 2 or later (CONFIG_SECURITY_LANDLOCK, lsm=)")
	}
	dir := t.TempDir()
	program, err := os.ReadFile("/usr/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "true"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	const code = `
import os, socket
found = socket.socket(fileno=3).recvmsg(1, socket.CMSG_LEN(4))[1][0][2]
fd = int.from_bytes(found[:4], "little")
def attempt(what, call, *args, **more):
    try: print(what, call(*args, **more))
    except OSError as e: print(what, e.strerror)
print(os.stat("true", dir_fd=fd).st_size > 0)
attempt("lists", os.open, ".", os.O_RDONLY, dir_fd=fd)
attempt("opens", os.open, "true", os.O_RDONLY, dir_fd=fd)
attempt("opens by /proc", open, f"/proc/self/fd/{fd}/true")
attempt("runs", os.execv, f"/proc/self/fd/{fd}/true", ["true"])
`
	const want = "True\nlists Permission denied\nopens Permission denied\nopens by /proc Permission denied\nruns Permission denied\n"
	eachKind(t, func(t *testing.T, l *lab) {
		folder, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		sb, out := l.start(t.Context(), t, l.p, code)
		if _, _, err := sb.Conn().(*net.UnixConn).WriteMsgUnix([]byte("x"), unix.UnixRights(int(folder.Fd())), nil); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(out); err != nil || string(got) != want {
			t.Errorf("wrote %q, %v, want %q", got, err, want)
		}
	})
}

// TestLandlockScopes: pid 1 is outside of the code's domain, with the same user ID.
func TestLandlockScopes(t *testing.T) {
	if host.LandlockVersion() < 6 {
		t.Skip("this kernel has no Landlock of version 6 or later")
	}
	const code = "import os\ntry: os.kill(1, 0); print('heard')\nexcept PermissionError: print('refused')\nos.kill(os.getpid(), 0)"
	eachKind(t, func(t *testing.T, l *lab) { l.wants(t, code, "refused\n") })
}
