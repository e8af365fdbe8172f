package pid1

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// send plays pid 1: it sends a message with descriptors over the lifeline.
func send(t *testing.T, l Lifeline, text string, fds ...int) {
	t.Helper()
	if err := unix.Sendmsg(int(l.Theirs.Fd()), []byte(text), unix.UnixRights(fds...), nil, 0); err != nil {
		t.Fatal(err)
	}
}

func newTestLifeline(t *testing.T) Lifeline {
	t.Helper()
	l, err := NewLifeline()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// ends opens what pid 1 sends: an end of a socket, and a folder.
func ends(t *testing.T, dir string) (socket, folder int) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(pair[0]); unix.Close(pair[1]) })
	folder, err = unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(folder) })
	return pair[0], folder
}

// TestReceiveAfterTheEndOfPid1: what it has sent is not lost with it.
func TestReceiveAfterTheEndOfPid1(t *testing.T) {
	l, dir := newTestLifeline(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, folder := ends(t, dir)
	send(t, l, "\x00", socket, folder)
	l.Theirs.Close()
	control, workspace, err := l.Receive()
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	defer workspace.Close()
	fd, err := unix.Openat(int(workspace.Fd()), "file", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "file")
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "kept" {
		t.Errorf("read %q, %v", b, err)
	}
}

func TestReceiveRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		send func(l Lifeline, socket, folder int)
		want string
	}{
		"an error":         {func(l Lifeline, _, _ int) { send(t, l, "emounting on /tmp: no memory") }, "mounting on /tmp: no memory"},
		"no descriptors":   {func(l Lifeline, _, _ int) { _, _ = l.Theirs.Write([]byte{0}) }, "no socket"},
		"a socket alone":   {func(l Lifeline, socket, _ int) { send(t, l, "\x00", socket) }, "1 descriptors"},
		"no socket at all": {func(l Lifeline, _, folder int) { send(t, l, "\x00", folder, folder) }, ""},
		"the end":          {func(l Lifeline, _, _ int) { l.Theirs.Close() }, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newTestLifeline(t)
			socket, folder := ends(t, t.TempDir())
			tt.send(l, socket, folder)
			if _, _, err := l.Receive(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}
