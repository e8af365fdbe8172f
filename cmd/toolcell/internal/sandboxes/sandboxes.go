// Package sandboxes gives the bridge what its code runs in: the image (Images), the packages
// that a script names (Packages), and sandboxes whose errors say how to fix the folders
// (Runtime). The default image is replaced by the host's own Python if it cannot be reached,
// an image that the user named never is. The sandbox that chooses the versions of packages
// reaches the package index and nothing else.
package sandboxes

import (
	"context"

	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci"
)

// A Background does work that no run waits for.
type Background interface {
	// Refresh starts work on an image: asking the registry whether the tag has moved, if ask
	// is set, and compiling modules.
	Refresh(ref string, ask bool)
	// Compile starts to compile the modules of a set of packages for an image.
	Compile(ref, set string)
}

// A Runtime wraps the runtime so that errors say how to fix the folders.
type Runtime struct {
	*oci.Runtime
	Dirs settings.Dirs
}

// Start starts a process in a sandbox, as oci.Runtime does.
func (r Runtime) Start(ctx context.Context, p oci.Process) (run.Sandbox, error) {
	sb, err := r.Runtime.Start(ctx, p)
	if err != nil {
		return nil, r.Dirs.Explain(err)
	}
	return sandbox{sb, r.Dirs}, nil
}

type sandbox struct {
	*oci.Sandbox
	dirs settings.Dirs
}

func (s sandbox) Wait() (oci.Exit, error) {
	exit, err := s.Sandbox.Wait()
	return exit, s.dirs.Explain(err)
}
