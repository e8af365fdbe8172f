// Package npm gets MCP servers from an npm registry, with the packages that they need, and
// keeps each server's packages as a folder for all processes of the user.
//
// It promises that no code of a package runs on the host, that no install script runs on
// a layer, that each file comes from a tarball with the SHA-512 of the lock, stays in its
// package's folder and within the limits of the request, and that a layer it returns is
// complete. npm chooses the versions, in a sandbox that the caller provides. It does not
// judge what a package does once node runs it. Install scripts run only if the caller starts the
// command of Tool.RunScripts, on a copy in a sandbox of its own.
//
// A store is a folder of
//
//	layers/   the packages of a lock (layerDir)
//	locks/    what the processes that share the store lock
package npm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/fetch"
	"github.com/toolcell/toolcell/rootfs/packages"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

// A Source is where packages may come from.
type Source struct {
	Registry   string   // its URL, with https, or with http if it has no TLS
	Files      []string // HOST or HOST:PORT of those that may serve tarballs too
	Credential *packages.Credential
}

// origins returns the hosts of a source.
func (s Source) origins() (fetch.Origins, error) {
	authorization := ""
	if s.Credential != nil {
		authorization = s.Credential.Authorization
	}
	from, err := fetch.NewOrigins(s.Registry, s.Files, authorization, "which is not the registry's host and not one that is allowed beside it")
	if err != nil {
		return from, fmt.Errorf("%s is not the address of an npm registry", rootdir.Quote(s.Registry))
	}
	return from, nil
}

// A Platform is where packages run, in npm's words: linux, x64, glibc.
type Platform struct{ OS, CPU, Libc string }

// ThisPlatform returns the platform of sandboxes on this machine; libc is glibc or musl.
func ThisPlatform(libc string) Platform {
	cpu := map[string]string{"amd64": "x64", "386": "ia32", "ppc64le": "ppc64"}[runtime.GOARCH]
	if cpu == "" {
		cpu = runtime.GOARCH
	}
	return Platform{"linux", cpu, libc}
}

// A Request asks for the packages of a lock.
type Request struct {
	Source
	Platform
	Lock     []byte // a package-lock.json, version 3
	MaxBytes int64  // of all packages unpacked, and of all tarballs
	MaxCount int    // packages; there may be no more than 3,000 in any case
	MaxTime  time.Duration
	// Check may refuse a package. If it is nil, all are refused.
	Check func(name, version string) error

	Offline bool // use only what is in the store
}

// requestErrorf returns an error that the request itself causes.
func requestErrorf(format string, args ...any) error {
	return &packages.RequestError{Err: fmt.Errorf(format, args...)}
}

// check checks a lock against the limits of a request.
func (r Request) check(tree *Tree) error {
	if n := len(tree.packages); n > r.MaxCount {
		return requestErrorf("the server needs %d packages with all that they need; the most is %d", n, r.MaxCount)
	}
	for _, p := range tree.packages {
		if r.Check == nil {
			return requestErrorf("nothing checks the package %q, so it is not used", p.Name)
		}
		if err := r.Check(p.Name, p.Version); err != nil {
			return &packages.RequestError{Err: err}
		}
	}
	return nil
}

// A Store is a folder of layers. Several processes may use one at once.
type Store struct {
	cache  *cachedir.Cache
	layers layerDir
	client *fetch.Client
}

// Open opens the store in dir, creating it if needed, and removes what killed processes
// left there. If it cannot be created, the first request returns the error.
func Open(dir string) *Store {
	cache, _ := cachedir.Open(dir, "layers")
	cache.Sweep("layers", "")
	return &Store{cache, newLayerDir(cache), fetch.NewClient()}
}

// Close releases all layers: from now on any process may remove them.
func (s *Store) Close() error {
	s.cache.ReleaseAll()
	s.client.Close()
	return nil
}

// A job is the work on one request.
type job struct {
	*Store
	Request
	tree     *Tree
	from     fetch.Origins
	progress func(packages.Progress)
}

// Ensure returns the layer with the packages of a lock, and fetches them if it is not
// there. Concurrent calls, also from other processes, share the work. No process removes
// the layer while this one runs. Progress may be nil.
//
// An error that the request causes is a *packages.RequestError; packages.ErrOffline is in
// the chain if the layer is not here and nothing may be fetched, and fetch.ErrContent if a
// tarball is not the one of the lock.
func (s *Store) Ensure(ctx context.Context, r Request, progress func(packages.Progress)) (*Layer, error) {
	if err := s.cache.CheckOwn(); err != nil {
		return nil, err
	}
	from, err := r.origins()
	if err != nil {
		return nil, err
	}
	tree, err := ParseLock(ctx, r.Lock, r.Source, r.Platform)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &packages.RequestError{Err: err, Locked: true}
	}
	if err := r.check(tree); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(packages.Progress) {}
	}
	layer, err := (&job{s, r, tree, from, progress}).ensure(ctx)
	if err != nil {
		return nil, err
	}
	if layer.Bytes > r.MaxBytes { // it was made under another limit
		return nil, tooLarge(r.MaxBytes)
	}
	layer.Scripts, layer.Needed = tree.InstallScripts(), tree.neededScripts()
	return layer, nil
}

func (j *job) ensure(ctx context.Context) (*Layer, error) {
	name := layerName(j.tree)
	if layer := j.layers.load(name); layer != nil {
		return layer, nil
	}
	if j.Offline {
		return nil, fmt.Errorf("the server's packages are not here, and %w", packages.ErrOffline)
	}
	within, cancel := context.WithTimeoutCause(ctx, j.MaxTime, fmt.Errorf("it took longer than %s", j.MaxTime))
	defer cancel()
	layer, err := j.make(within, name)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("getting the server's packages: %w", context.Cause(within))
	}
	return layer, err
}

// make makes a layer, unless another process has done so meanwhile.
func (j *job) make(ctx context.Context, name string) (*Layer, error) {
	unlock, err := j.cache.Wait(ctx, name, state.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("waiting for another process that gets the same packages: %w", err)
	}
	defer unlock()
	if layer := j.layers.load(name); layer != nil {
		return layer, nil
	}
	err = cachedir.Build(j.layers.dir, name, func(dir string) error { return j.fill(ctx, name, dir) })
	if err != nil {
		return nil, err
	}
	if layer := j.layers.load(name); layer != nil {
		return layer, nil
	}
	return nil, errors.New("the packages vanished: something else is changing the store of packages")
}
