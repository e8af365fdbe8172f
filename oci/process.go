package oci

import (
	"net"
	"os"

	"github.com/toolcell/toolcell/oci/spec"
)

// A Process is what to run, and in what.
type Process struct {
	Root   Root
	Binds  []Bind // below /run/toolcell
	Args   []string
	Env    []string // the whole environment: none is inherited
	Limits Limits

	// Run owns Stdout and Stderr: they are closed once the process has them,
	// or failed to start. Standard input is empty.
	Stdout, Stderr *os.File
	// Control is given the host's end of a stream socket that the process has
	// as descriptor 3. It is the function's to close. It is not called if the
	// sandbox does not start; if it is nil the process has no such socket.
	Control func(net.Conn)
	// Workspace is given the sandbox's /workspace before Control is called, as
	// a descriptor to open files below (openat(2)), or why it cannot be had.
	// It can be read until it is closed, even if the sandbox was killed, and
	// is the function's to close. It may be nil.
	Workspace func(dir *os.File, err error)
	// Urge has SIGURG sent to the process for each value that comes: one that
	// does not listen to it is not disturbed. It may be nil.
	Urge <-chan struct{}
	// Python says how to start the process ahead of its use, if that can be.
	Python *Python
	// Ended gives the exit code of a process that has nothing more to say,
	// and is alone, before it has ended. Run does not wait for it then. Only a
	// process that was started ahead of its use can know.
	Ended <-chan int
	// Kept says that the process goes on when its work is done, and waits for
	// more: it does not count as one of those at work.
	Kept bool
}

// sandboxed gives the part of p that says what its sandbox is, for code that
// has these ids in it.
func (p Process) sandboxed(uid, gid uint32) spec.Process {
	return spec.Process{
		Root: p.Root, Binds: p.Binds, Args: p.Args, Env: p.Env, Limits: p.Limits, Python: p.Python,
		UID: uid, GID: gid, Control: p.Control != nil,
	}
}

// start hands over what the host has of a sandbox, with which it can begin.
func (p Process) start(conn net.Conn, workspace *os.File) {
	if p.Workspace != nil {
		p.Workspace(workspace, nil)
	} else {
		workspace.Close()
	}
	p.Control(conn)
}

// closeFiles closes our copies; closing a file twice does no harm.
func (p Process) closeFiles() {
	for _, f := range []*os.File{p.Stdout, p.Stderr} {
		if f != nil {
			f.Close()
		}
	}
}
