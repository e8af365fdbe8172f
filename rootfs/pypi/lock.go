package pypi

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/toolcell/toolcell/rootfs/serverlock"
)

// lock is the file of the server's lock, a lock file of PEP 751. Another is needed when the entry asks
// for other packages, or for another Python.
func (s Server) lock() serverlock.File {
	var lines []string
	for _, r := range s.Requirements {
		lines = append(lines, r.String())
	}
	slices.Sort(lines)
	return serverlock.File{Path: filepath.Join(s.Dir, "pylock.toml"), Digest: serverlock.DigestOf(append(lines, "python"+s.Python.String()))}
}

// locked returns the lock for what the entry asks for, and makes it if it is not there.
func (s Server) locked(ctx context.Context, store *packages.Store, r packages.Request) ([]byte, error) {
	return s.lock().Ensure(ctx, func(ctx context.Context) ([]byte, error) { return resolve(ctx, store, r) })
}

// resolve chooses versions within the time of a request.
func resolve(ctx context.Context, store *packages.Store, r packages.Request) ([]byte, error) {
	within, cancel := context.WithTimeoutCause(ctx, r.MaxTime, fmt.Errorf("it took longer than %s ([packages] maxTime)", r.MaxTime))
	defer cancel()
	return store.Resolve(within, r)
}
