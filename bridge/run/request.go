package run

import (
	"context"
	"io"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/hostapi"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/mcpproxy"
)

// A Request is what one run is to do.
type Request struct {
	Code    string
	Servers []string      // names or aliases of servers that may be called, "*" is all; and hosts, as https://HOST or tcp://HOST:PORT
	Timeout time.Duration // 0 is the default
	Session string        // session that keeps the sandbox for later runs; "" is none
	File    string        // that the code comes from: __file__, and its name in tracebacks
	Plan    bool          // a dry run: calls that may change something are listed in the result instead of being made
	Argv    []string      // sys.argv; a session keeps that of its first run. One empty name if nil

	// Progress receives the progress of preparations before the code runs and
	// then, with a total of 0, the progress of its calls. It may be nil.
	Progress func(done, total int64, text string)
	Lines    bool // Progress gets what the code prints, too
	// Stdout and Stderr receive the code's whole output as it is written, in
	// addition to the result. They may be nil.
	Stdout, Stderr io.Writer
	// Stdin is the code's standard input, which is empty if Stdin is nil. No more than a
	// pipe holds is read before the code asks for it. A session keeps the Stdin of its
	// first run.
	Stdin io.Reader
	// Input, if it is not nil, is used for sys.stdin instead. It is called when the
	// code reads a line, and returns the line with its line end, io.EOF, or
	// ErrInterrupted, which raises KeyboardInterrupt. The time that it takes does not
	// count as time of the run.
	Input func(ctx context.Context) (string, error)
	// Ask puts a question to the user and returns the answer. If it is nil, no user
	// can be asked. It is for callers of Runs.Do; clients are asked as they can be.
	Ask func(ctx context.Context, q consent.Question) consent.Answer
	// Client is the one that makes the request; nil is this program itself. Elicits says how it
	// can be asked what servers want to know.
	Client  *consent.Client
	Elicits mcpproxy.ElicitCapabilities
	noUser  bool
	// Folder is the folder that the client works in, "" for that of this process, or FolderErr
	// why it is not known, ErrNoFolder if it works in none. They count only with Options.Shown.
	Folder    string
	FolderErr error
	Rounds    int           // questions in results that the client has answered for this call already
	Span      *signals.Span // of the client's request; nil if there is none
	// Running, if it is not nil, is called when the code is about to run, with a
	// function that raises KeyboardInterrupt in it.
	Running func(interrupt func())
}

// ErrInterrupted is what Request.Input returns for Ctrl-C.
var ErrInterrupted = hostapi.ErrInterrupted
