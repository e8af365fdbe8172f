package stdio

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"golang.org/x/sys/unix"
)

// A Launcher starts a server: OnHost, or one of the caller's, such as in a sandbox. It may
// first prepare, until ctx ends: then it soon returns an error. What it has started outlives
// ctx. Its error is a *CommandError if the user can cure it at any moment.
type Launcher func(ctx context.Context, s config.Server) (*Launched, error)

// Launched is a server that was started. The Process that takes it closes the pipes.
type Launched struct {
	Child Child
	// Stdin is the writing end of a pipe, as os.Pipe returns it: it is asked how much the
	// server has not read yet, and a write to a full one must not block a thread.
	Stdin *os.File
	// Stdout and Stderr end a Read when they are closed.
	Stdout, Stderr io.ReadCloser
	// Explain returns lines that an error of the server should have after it, such as the hosts
	// that it was not allowed to reach since then; "" is none. It may be nil. It may be called
	// at any time, also after the end, and returns at once. The lines are cleaned, bounded
	// (three of 300 bytes), and hidden from code that may not call the server.
	Explain func(since time.Time) string
}

// A Child is a process with all that it has started: a process group of this host, or a
// sandbox. Its Process calls Await, then Signal with SIGKILL, then Reap.
type Child interface {
	// Await returns when the first process has ended.
	Await()
	// Signal sends SIGTERM, which asks the child to end, or SIGKILL, which ends all of it. It
	// does not wait for the end. It may be called during Await, and not once Reap was called.
	Signal(sig unix.Signal)
	// Reap returns how the first process ended, in the words of os.ProcessState ("exit status
	// 1", "signal: killed"), or as what follows the server's name in a sentence ("used more
	// than its 1 GiB of memory and was ended"); "" is not known. It waits for nothing that the
	// server can hold up.
	Reap() string
}
