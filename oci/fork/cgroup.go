package fork

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// A cgroupMaker makes the cgroups of forks, all alike.
type cgroupMaker struct {
	of     host.Cgroup
	config *cgroups.Cgroup
	paths  map[string]string // with version 1, by controller
	id     string            // the part of config and paths that each fork replaces

	mu   sync.Mutex
	free []*cgroupSlot
}

// A cgroupSlot is the name of a fork's cgroup and the state folder that has the note
// of it. Both are reused by one fork after another: creating and removing a file on
// disk would be a tenth of the cost of a run.
type cgroupSlot struct{ id, dir string }

func (p *cgroupSlot) removeNote() error { return os.RemoveAll(filepath.Join(p.dir, p.id)) }

// newCgroupMaker prepares to make cgroups like that of a fresh sandbox for p.
func newCgroupMaker(p spec.Process, h spec.Host) (*cgroupMaker, error) {
	if h.Cgroup.Driver == host.CgroupNone {
		return nil, nil
	}
	id := container.NewID()
	config, err := container.Convert(spec.New(p, h, id), h, id)
	if err != nil {
		return nil, err
	}
	c := &cgroupMaker{of: h.Cgroup, config: config.Cgroups, id: id}
	if h.Cgroup.V2 {
		return c, nil
	}
	// With version 1 every move to another cgroup waits until all processors
	// have taken note, so forks are moved only where they have limits of their
	// own. For the rest, such as devices, the template's limits apply, which
	// are those of a fresh sandbox.
	m, err := manager.New(c.config)
	if err != nil {
		return nil, err
	}
	limited := map[string]bool{"memory": h.Cgroup.Memory, "pids": h.Cgroup.PIDs, "cpu": h.Cgroup.CPU && p.Limits.CPUs > 0}
	c.paths = m.GetPaths()
	maps.DeleteFunc(c.paths, func(controller, _ string) bool { return !limited[controller] })
	r := *c.config.Resources
	r.Devices, r.SkipDevices = nil, true
	c.config.Resources = &r
	return c, nil
}

// acquireSlot prepares the cgroup of a fork, and records it.
func (f *fork) acquireSlot() (*cgroups.Cgroup, cgroups.Manager, error) {
	c := f.t.cgroups
	p := c.reuseSlot()
	if p == nil {
		p = &cgroupSlot{id: container.NewID()}
	}
	config, m, err := c.newCgroup(p.id)
	if err != nil {
		return nil, nil, err
	}
	if p.dir == "" || !container.HasNote(p.dir, p.id) {
		if p.dir, err = f.t.containers.StateDir(); err != nil {
			return nil, nil, err
		}
		if err := container.NoteCgroup(p.dir, p.id, config, m.GetPaths()); err != nil {
			return nil, nil, fmt.Errorf("noting it: %w", err)
		}
	}
	f.slot = p
	return config, m, nil
}

// reuseSlot returns the slot of a fork that is gone, nil if there is none.
func (c *cgroupMaker) reuseSlot() *cgroupSlot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.free) == 0 {
		return nil
	}
	p := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	return p
}

// releaseSlot makes a slot free once its fork and the cgroup are gone.
func (c *cgroupMaker) releaseSlot(p *cgroupSlot) error {
	if c.of.Driver == host.CgroupSystemd {
		// systemd may remember a unit for a while and would refuse another of that
		// name.
		return p.removeNote()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, p)
	return nil
}

// removeNotes removes the notes of cgroups. No fork may be left.
func (c *cgroupMaker) removeNotes() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.free {
		_ = p.removeNote() // the next start sweeps it
	}
	c.free = nil
}

// newCgroup returns the configuration and the manager of one fork's cgroup.
func (c *cgroupMaker) newCgroup(id string) (*cgroups.Cgroup, cgroups.Manager, error) {
	config := *c.config
	if c.of.Driver == host.CgroupSystemd {
		config.Name = id
	} else {
		config.Path = strings.Replace(config.Path, c.id, id, 1)
	}
	var paths map[string]string
	if c.paths != nil {
		paths = map[string]string{}
		for controller, path := range c.paths {
			paths[controller] = strings.Replace(path, c.id, id, 1)
		}
	}
	m, err := manager.NewWithPaths(&config, paths)
	return &config, m, err
}

// An oomWatch is notified by the kernel when the memory limit of a cgroup of version 1 is
// hit (cgroup-v1/memory.rst, 10. OOM Control).
type oomWatch struct {
	hit    <-chan struct{} // closed at the end of the watch
	events *os.File
}

func newOOMWatch(dir string) (*oomWatch, error) {
	control, err := os.Open(filepath.Join(dir, "memory.oom_control"))
	if err != nil {
		return nil, err
	}
	defer control.Close()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	events := os.NewFile(uintptr(fd), "eventfd")
	at := filepath.Join(dir, "cgroup.event_control")
	if err := os.WriteFile(at, fmt.Appendf(nil, "%d %d", fd, control.Fd()), 0); err != nil {
		return nil, errors.Join(err, events.Close())
	}
	hit := make(chan struct{}, 1) // there may be no listener yet, or no longer
	hear := func() {
		select {
		case hit <- struct{}{}:
		default:
		}
	}
	go func() {
		defer close(hit)
		// A limit that is no longer watched counts as hit.
		defer contain.Recover("watching the memory limit of a sandbox", func(error) { hear() })
		for b := make([]byte, 8); ; {
			if _, err := events.Read(b); err != nil {
				return
			}
			hear()
		}
	}()
	return &oomWatch{hit, events}, nil
}

// close ends the watch. It must come before the cgroup is removed, since that
// counts as an event too.
func (w *oomWatch) close() { w.events.Close() }
