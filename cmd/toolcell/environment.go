package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/toolcell/toolcell/bridge/project"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/rootfs"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"github.com/toolcell/toolcell/rootfs/npm"
	"github.com/toolcell/toolcell/rootfs/packages"
)

// parts run code: the images and packages on this machine, and the sandboxes.
type parts struct {
	store     *rootfs.Store
	wheels    *packages.Store
	runtime   *oci.Runtime
	runnerDir string
}

// openParts opens them. Nothing is started or fetched yet.
func openParts(s settings.Settings, log *slog.Logger) (parts, error) {
	store, err := openStore(s, log)
	if err != nil {
		return parts{}, err
	}
	var runtime *oci.Runtime
	runnerDir, err := runner.Write(filepath.Join(s.Dirs.Cache, "runner"))
	if err == nil {
		err = cachedir.CheckOwn(s.Dirs.Cache, "runner", filepath.Join("runner", filepath.Base(runnerDir)))
	}
	if err == nil {
		runtime, err = oci.Open(s.Dirs.Run, s.UID, s.GID)
	}
	if err != nil {
		return parts{}, errors.Join(s.Dirs.Explain(err), store.Close())
	}
	return parts{store, openPackages(s), runtime, runnerDir}, nil
}

// Close closes what was opened, users before what they use.
func (p parts) Close() error {
	return errors.Join(p.runtime.Close(), p.wheels.Close(), p.store.Close())
}

// image returns the source of the image that code runs on.
func (p parts) image(s settings.Settings) *sandboxes.Images {
	return &sandboxes.Images{Store: p.store, Ref: s.Image, Named: s.ImageNamed, Runner: p.runnerDir, Dirs: s.Dirs}
}

// packages returns the source of the packages that scripts name.
func (p parts) packages(s settings.Settings) *sandboxes.Packages {
	return &sandboxes.Packages{Store: p.wheels, Sandboxes: sandboxes.Runtime{Runtime: p.runtime, Dirs: s.Dirs}, Dirs: s.Dirs, Limits: s.Runs.Limits}
}

// openStore opens the store of images.
func openStore(s settings.Settings, log *slog.Logger) (*rootfs.Store, error) {
	s.Puller.Log = log
	store, err := rootfs.Open(filepath.Join(s.Dirs.Cache, "images"), s.Puller)
	if err != nil {
		return nil, s.Dirs.Explain(err)
	}
	store.Policy, store.MaxBytes, store.MaxEntries = s.Pull, s.Puller.MaxArchive, s.MaxFiles
	return store, nil
}

// openPackages opens the store of packages.
func openPackages(s settings.Settings) *packages.Store {
	return packages.Open(filepath.Join(s.Dirs.Cache, "packages"), s.UV)
}

// openNPM opens the store of servers' packages from npm.
func openNPM(s settings.Settings) *npm.Store { return npm.Open(filepath.Join(s.Dirs.Cache, "npm")) }

// An environment is what code runs in as the settings of one moment have it: an image, packages,
// folders of the host, and the sandboxes.
type environment struct {
	parts
	settings settings.Settings
	images   *sandboxes.Images
	scripts  *sandboxes.Packages
	shown    *project.Projects // nil if code sees no client's folder
	work     *background       // nil if there is none
}

// openEnvironment opens one. Nothing is started or fetched yet. work makes what works on its images
// in the background; nil if nothing does.
func openEnvironment(s settings.Settings, log *slog.Logger, work func(settings.Settings) *background) (*environment, error) {
	if err := checkMounts(s); err != nil {
		return nil, err
	}
	p, err := openParts(s, log)
	if err != nil {
		return nil, err
	}
	p.runtime.Mount(s.Mounts)
	e := &environment{parts: p, settings: s, images: p.image(s), scripts: p.packages(s)}
	e.images.Mounts, e.scripts.Offline = s.Places(), s.Pull == rootfs.PullNever
	if work != nil {
		e.work = work(s)
		e.images.Background, e.scripts.Background = e.work, e.work
	}
	if s.Project == settings.ProjectRead {
		e.shown = shownProject(s, p.runtime)
	}
	return e, nil
}

// Close ends its sandboxes and its work in the background.
func (e *environment) Close() error {
	e.scripts.Close()
	if e.work != nil {
		e.work.close()
	}
	return e.parts.Close()
}

// give gives runs the environment.
func (e *environment) give(o *run.Options) {
	o.Rootfs, o.Cached = e.images.Get, e.images.Cached
	o.Packages = e.scripts.Get
	o.PackagesHere = func(ctx context.Context, n run.Needs) bool {
		image, ok := e.images.Cached(ctx)
		return ok && e.scripts.Here(ctx, image, n)
	}
	o.Sandboxes, o.Warm = sandboxes.Runtime{Runtime: e.runtime, Dirs: e.settings.Dirs}, e.runtime.Warm
	o.Missing, o.Isolation = e.runtime.Missing, e.runtime.Isolation
	o.Mounts, o.Shown, o.RunnerDir = e.settings.Mounts, e.shown, e.runnerDir
}

// shownProject returns the folders of clients, which code can read. Without a runtime it is not
// said what keeps code from that.
func shownProject(s settings.Settings, runtime *oci.Runtime) *project.Projects {
	dir, err := os.Getwd()
	if err != nil {
		dir = "." // it was removed: the first run says so
	}
	o := project.Options{Dir: dir, Check: s.CheckProject}
	if runtime != nil {
		o.Denied = runtime.DeniedProject
	}
	return project.New(o)
}

// environments keep those of a process whose settings may change. One that was replaced stays open,
// for the runs and sessions that began in it and for the case that the user changes their mind; what
// waits in it for runs ends after the idle timeout.
type environments struct {
	open func(s settings.Settings) (*environment, error)

	mu    sync.Mutex
	byKey map[string]*environment
}

// of returns the environment that settings call for. All their mounts have to be there.
func (e *environments) of(s settings.Settings) (*environment, error) {
	if err := s.CheckAbsent(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	key := s.EnvironmentKey()
	if env := e.byKey[key]; env != nil {
		return env, nil
	}
	env, err := e.open(s)
	if err != nil {
		return nil, err
	}
	e.byKey[key] = env
	return env, nil
}

// all returns those that are open.
func (e *environments) all() []*environment {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.byKey))
}

// Close closes all of them.
func (e *environments) Close() (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, env := range e.byKey {
		err = errors.Join(err, env.Close())
	}
	return err
}
