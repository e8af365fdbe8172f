package oci

import (
	"os"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/spec"
)

// A Process is what to run, and in what.
type Process struct {
	Root   spec.Root
	Binds  []spec.Bind // below /run/toolcell
	Args   []string
	Env    []string // the whole environment: none is inherited
	Limits spec.Limits

	// Start owns the streams: they are closed once the process has them, or
	// failed to start. Standard input is empty if Stdin is nil.
	Stdin, Stdout, Stderr *os.File
	// Control gives the process a stream socket as descriptor 3, whose other
	// end is Sandbox.Conn.
	Control bool
	// Session says that the process outlives its first work and waits for more;
	// it does not count as running.
	Session bool
	// Python says how to start the process ahead of its use; nil if that is not
	// possible.
	Python *spec.Python
}

// sandboxed returns the part of p that describes its sandbox, for code with
// these ids inside.
func (p Process) sandboxed(uid, gid uint32) spec.Process {
	return spec.Process{
		Root: p.Root, Binds: p.Binds, Args: p.Args, Env: p.Env, Limits: p.Limits, Python: p.Python,
		UID: uid, GID: gid, Control: p.Control,
	}
}

// streams returns the standard streams.
func (p Process) streams() container.Streams {
	return container.Streams{In: p.Stdin, Out: p.Stdout, Err: p.Stderr}
}

// closeFiles closes our copies; closing a file twice does no harm.
func (p Process) closeFiles() {
	for _, f := range []*os.File{p.Stdin, p.Stdout, p.Stderr} {
		if f != nil {
			f.Close()
		}
	}
}
