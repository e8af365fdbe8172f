package stdio

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

// TestPipesAreClosedWhenOneCannotBeMade, since this process may have no more files.
//
//test:alone
func TestPipesAreClosedWhenOneCannotBeMade(t *testing.T) {
	r, w, err := os.Pipe() // with the first one, the Go runtime opens files that it cannot do without
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) }()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	var free []int // all that there are
	for {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			break
		}
		free = append(free, fd)
		defer unix.Close(fd)
	}
	if len(free) < 3 {
		t.Skip("there are too few files")
	}
	for _, fd := range free[:3] { // for one pipe
		unix.Close(fd)
	}
	s := config.Server{Name: "s", Command: "/bin/true", Dir: "/"}
	_, err = Start(t.Context(), s, OnHost(&Guard{}), redact.New(s), slog.New(slog.DiscardHandler), message.NewNotifications(func() {}))
	if !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "pipe") {
		t.Errorf("it started, or failed elsewhere: %v", err)
	}
	for i := range 3 {
		if free[i], err = unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			t.Errorf("only %d of 3 files are closed: %v", i, err)
			break
		}
	}
}
