// Package sandboxed starts the user's MCP servers over stdio in sandboxes of their own, with what the
// policy gives each of them.
//
// It promises that a server which is to run in a sandbox never starts without one, or in a weaker one:
// what is missing is an error. A server sees its command, its HOME and the folders that its section
// names; it reaches the hosts that its section names, and no others; a secret for one host never
// enters its sandbox. It ends as a whole, with its connection or with this program.
//
// What a server returns is as untrusted as that of any other, and what it was given it can use: a
// folder that it may write to, a host that it may reach.
package sandboxed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/transport/stdio"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/homes"
	"github.com/toolcell/toolcell/oci/spec"
)

// A Launcher starts servers in sandboxes. It is safe for concurrent use.
type Launcher struct {
	o         Options
	maxHome   int64 // bytes of a server's HOME
	homeEvery time.Duration

	maxInstalled   int64 // bytes that install scripts may leave
	maxInstallTime time.Duration
}

// Options set up a Launcher. All of them have to be there.
type Options struct {
	// Sandboxes starts sandboxes, which show no folders of the host but those of a Process.
	Sandboxes Sandboxes
	// Homes returns the store of the folders that servers have as HOME, for one that sees these
	// mounts: whom its folder has to belong to depends on them.
	Homes func(mounts []spec.Mount) (*homes.Store, error)
	// Prepare makes ready what the command of a server needs.
	Prepare func(ctx context.Context, s config.Server, box *policy.Sandbox) (*Prepared, error)
	// Project returns the folder of a project, without what of it is hidden from code, for the servers
	// in the project's own file.
	Project func(ctx context.Context, dir string) (*spec.Project, error)
	// Dir returns a folder of this process's own, for the certificates that servers trust. What a killed
	// process leaves there is removed.
	Dir func() (string, error)
	// Written returns the folders of this host that code or any server may write to.
	Written func() []string
	Log     *slog.Logger
}

// Sandboxes start processes in sandboxes, as oci.Runtime does.
type Sandboxes interface {
	Start(ctx context.Context, p oci.Process) (*oci.Sandbox, error)
}

// Prepared is the command of a server in an image, with what it needs there.
type Prepared struct {
	Root  spec.Root
	Binds []spec.Bind
	Args  []string
	Path  []string // folders for PATH, before the image's own
	Env   []string // of the image

	Install *Install // what has to run once before; nil is nothing
	Unrun   []string // packages whose install scripts have not run, since the section has no install
}

// New returns a Launcher.
func New(o Options) *Launcher { return &Launcher{o, maxHome, homeEvery, maxInstalled, maxInstallTime} }

// A launch is a server on its way into its sandbox.
type launch struct {
	*Launcher
	server config.Server
	box    *policy.Sandbox
	mounts []spec.Mount
	dir    string // where it starts, inside
	homes  *homes.Store
}

// Launch starts a server in the sandbox that the policy describes. It may take as long as a download;
// if ctx ends, it soon returns an error. What it has started outlives ctx. Its error is a
// *stdio.CommandError: the user can cure it, and the next start may succeed.
func (l *Launcher) Launch(ctx context.Context, s config.Server, box *policy.Sandbox) (*stdio.Launched, error) {
	started, err := l.launch(ctx, s, box)
	if err != nil {
		return nil, &stdio.CommandError{Err: fmt.Errorf("it cannot run in its sandbox: %w", err)}
	}
	return started, nil
}

func (l *Launcher) launch(ctx context.Context, s config.Server, box *policy.Sandbox) (*stdio.Launched, error) {
	in := launch{Launcher: l, server: s, box: box}
	var err error
	if in.mounts, err = l.mountsOf(box); err != nil {
		return nil, err
	}
	if in.dir, err = in.workingDir(); err != nil {
		return nil, err
	}
	prepared, err := l.o.Prepare(ctx, s, box)
	if err != nil {
		return nil, err
	}
	if in.homes, err = l.o.Homes(in.mounts); err != nil {
		return nil, err
	}
	home, err := in.homes.Ensure(ctx, s.Name)
	if err != nil {
		return nil, err
	}
	installed, err := in.install(ctx, prepared)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		installed.Release()
		return nil, context.Cause(ctx)
	}
	return in.start(prepared, &spec.Server{Home: home.Dir, UID: home.UID, Dir: in.dir, Mounts: in.mounts, Section: box.Section}, installed)
}

// workingDir returns where the server starts: its entry's directory, as its sandbox sees that, and
// otherwise its project, or "", its HOME.
func (in *launch) workingDir() (string, error) {
	s := in.server
	if s.Dir == "" && s.Project {
		return spec.ProjectTarget, nil
	}
	if s.Dir == "" {
		return "", nil
	}
	dir, err := filepath.EvalSymlinks(s.Dir)
	if err != nil || !filepath.IsAbs(dir) {
		return "", fmt.Errorf(`its directory %q is not there; create it or correct "cwd" in %s`, s.Dir, s.Source)
	}
	for _, m := range in.mounts {
		if rest, err := filepath.Rel(m.Source, dir); err == nil && filepath.IsLocal(rest) {
			return filepath.Join(m.Target, rest), nil
		}
	}
	if rest, err := filepath.Rel(s.DefaultDir, dir); s.Project && err == nil && filepath.IsLocal(rest) {
		return filepath.Join(spec.ProjectTarget, rest), nil
	}
	return "", fmt.Errorf(`it starts in %s, which its sandbox does not show: add it to mounts in the section of %q, or remove "cwd" from %s`, s.Dir, text.Bound(s.Name, 120), s.Source)
}

// rootsFile writes the certificates that a server trusts, and returns the file, "" if there are none.
func (l *Launcher) rootsFile(pem []byte) (string, error) {
	if len(pem) == 0 {
		return "", nil
	}
	dir, err := l.o.Dir()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "roots-*.pem")
	if err != nil {
		return "", err
	}
	_, err = f.Write(pem)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("writing the certificates for a server: %w", err)
	}
	return f.Name(), nil
}
