// Package oci runs a process in a fresh rootless sandbox, with libcontainer
// and without any daemon.
//
// It promises that a process runs in its own user, mount, pid, network, ipc,
// uts and cgroup namespaces, without capabilities and without a way to gain
// privileges, on a read-only root; that the sandbox ends as a whole when its
// first process ends or its context does; and that the next server removes the
// sandboxes that a killed one left. It refuses to start anything weaker.
//
// On a host without usable cgroups it enforces the memory limit by polling, so that code can
// exceed it for some milliseconds, and limits CPU time by the number of processors;
// Runtime.Missing reports both.
//
// Package spec describes a sandbox, container starts one, fork forks one from a started
// Python, pid1 is the init inside, and limits enforces limits; host probes the host, and
// doctor reports what it lacks.
package oci

import (
	"context"
	"slices"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/fork"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// A Runtime starts sandboxes. It is safe for concurrent use.
type Runtime struct {
	containers *container.Runtime
	pool       *pool
}

// Open prepares to run sandboxes whose code has the given IDs inside. dir is the folder for
// their state, which servers may share; sandboxes that killed servers left there are ended
// and removed. The host is probed on first use.
func Open(dir string, uid, gid uint32) (*Runtime, error) {
	e, err := container.Open(dir, uid, gid)
	if err != nil {
		return nil, err
	}
	r := &Runtime{containers: e}
	r.pool = newPool(e, poolSource{
		MemoryAvailable: host.MemoryAvailable,
		Template: func(p spec.Process, h spec.Host) (template, error) {
			t, err := fork.NewTemplate(e, p, h)
			if err != nil {
				return nil, explainStart(err)
			}
			return t, nil
		},
		Container: func(p spec.Process, h spec.Host) (*container.Standby, []string, error) {
			return fork.NewStandby(e, p, h)
		},
	})
	return r, nil
}

// StateDir returns the state folder of this instance, made again if it was removed. It goes with Close,
// or is swept once this process is gone.
func (r *Runtime) StateDir() (string, error) { return r.containers.StateDir() }

// Mount adds mounts to all sandboxes. It is called before the first one starts.
func (r *Runtime) Mount(ms []spec.Mount) { r.containers.Mount(ms) }

// Close ends standby sandboxes and removes the state folder of this instance.
// No sandbox may be running.
func (r *Runtime) Close() error {
	r.pool.Close()
	return r.containers.Close()
}

// Missing lists, for the user, what this host lacks, with the consequences, and which
// modules could not be preloaded.
func (r *Runtime) Missing(l spec.Limits) []string {
	h, err := r.containers.Host()
	if err != nil {
		return nil
	}
	return slices.Concat(doctor.Missing(h.Host, l), doctor.DeniedMounts(h), r.containers.UIDNotes(), r.pool.Notes())
}

// DeniedProject returns why code cannot read the folder of a project, and a command that changes
// it, or nothing.
func (r *Runtime) DeniedProject(p spec.Project) (why, cure string) {
	h, err := r.containers.Host()
	if err != nil {
		return "", ""
	}
	return doctor.DeniedProject(h, p)
}

// Isolation describes what a sandbox lacks on this host, with names, or is empty. one-id: on
// a single-ID host, code has the host ID of this process, in its own user namespace.
// watched-limits: some limit is enforced without cgroups. no-proc: there is no /proc inside.
func (r *Runtime) Isolation(l spec.Limits) string {
	h, err := r.containers.Host()
	if err != nil {
		return ""
	}
	return doctor.Isolation(h.Host, l)
}

// KeepStandbys makes the runtime start sandboxes in advance from now on.
func (r *Runtime) KeepStandbys(w PoolOptions) {
	r.pool.SetOptions(w)
}

// Warm begins to prepare sandboxes for p, which needs no streams. It returns at
// once; that ends with ctx.
func (r *Runtime) Warm(ctx context.Context, p Process) {
	r.containers.Go(func() {
		h, err := r.containers.Host()
		if err == nil {
			h, err = p.findProject(ctx, h)
		}
		if err == nil {
			r.pool.Prepare(p.Process, h)
		}
	})
}

// HostOfServers returns this host as a server that sees these mounts finds it: whether it has a user ID
// of its own depends on them (spec.Host.ResolveMounts).
func (r *Runtime) HostOfServers(mounts []spec.Mount) (host.Host, error) {
	h, err := r.containers.Host()
	if err != nil {
		return host.Host{}, err
	}
	h.ResolveMounts(mounts)
	return h.Host, nil
}
