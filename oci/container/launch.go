package container

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// launch starts p as the first process of a new sandbox. The caller must destroy the
// sandbox.
func (r *Runtime) launch(p spec.Process, streams Streams, lifeline *os.File, h spec.Host) (c *libcontainer.Container, process *libcontainer.Process, err error) {
	id := NewID()
	dir, err := r.StateDir()
	if err != nil {
		return nil, nil, fmt.Errorf("making the sandbox state folder again: %w", err)
	}
	if h.Exe, err = r.program(dir); err != nil {
		return nil, nil, err
	}
	if p.Root, err = r.RoomFor(p.Root, h); err != nil {
		return nil, nil, err
	}
	if p.Top, err = TopNames(p.Root.Dir); err != nil {
		return nil, nil, err
	}
	p.Resolver = HasResolver(p.Root)
	if err := checkTrees(p.Root.Binds, h); err != nil {
		return nil, nil, err
	}
	if h.Mounts, err = findSubmounts(h.Mounts); err != nil {
		return nil, nil, err
	}
	if p.Proc, err = r.procFiles(dir, h, p.Limits.Memory); err != nil {
		return nil, nil, err
	}
	err = onStage(h.Admin, p.Root.Dir, func(rootfs string) (err error) {
		p.Root.Dir = rootfs
		s := spec.New(p, h, id)
		process = newProcess(streams, lifeline, s)
		c, err = r.create(s, h, dir, id, process, p.Limits)
		return err
	})
	if err != nil && c != nil {
		if _, never := process.Pid(); never != nil {
			// Nothing to signal: libcontainer would look for a pid in a nil
			// pointer (container_linux.go, hasInit).
			err = errors.Join(err, RetryRemove(c.Destroy))
		} else {
			err = errors.Join(err, destroy(c))
			_, _ = process.Wait() // it may not have been reaped yet
		}
	}
	return c, process, err
}

// procRefused reports whether a start failed because the kernel refuses to mount a /proc
// here: a new one would reveal the parts that are covered in ours (mount_namespaces(7)), as
// they are in containers. libcontainer's child sends its error as text.
func procRefused(err error) bool {
	return err != nil && strings.Contains(err.Error(), `mounting "proc"`) && strings.Contains(err.Error(), "not permitted")
}

// learn records what a failed start has shown about this host, and returns the host for
// the next try.
func (r *Runtime) learn(tried spec.Host, noProc, noIDMap bool) spec.Host {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.host.NoProc = r.host.NoProc || noProc
	r.host.NoIDMap = r.host.NoIDMap || noIDMap
	r.host.Mounts = nil // the code has another ID now, or its mounts have
	r.host.ResolveMounts(r.mounts)
	h := r.host.ShowingAs(tried)
	h.TemplateSeccomp = tried.TemplateSeccomp
	return h
}

// converting guards what convert does.
var converting sync.Mutex

// Convert turns a specification into libcontainer's configuration. The library
// writes the owner into devices that all its configurations share, so
// conversions run one at a time and each gets devices of its own.
func Convert(s *specs.Spec, h spec.Host, id string) (*configs.Config, error) {
	converting.Lock()
	defer converting.Unlock()
	config, err := specconv.CreateLibcontainerConfig(&specconv.CreateOpts{
		CgroupName:       id,
		UseSystemdCgroup: h.Cgroup.Driver == host.CgroupSystemd,
		Spec:             s,
		NoNewKeyring:     true, // see joinKeyring
		RootlessEUID:     !h.Admin,
		RootlessCgroups:  !h.Admin || h.Cgroup.Driver == host.CgroupNone,
	})
	if err != nil {
		return nil, fmt.Errorf("converting the sandbox specification: %w", err)
	}
	for i, device := range config.Devices {
		own := *device
		config.Devices[i] = &own
	}
	return config, nil
}

// create makes the container and starts its first process. If it fails with a
// container to destroy, it returns that along with the error.
func (r *Runtime) create(s *specs.Spec, h spec.Host, dir, id string, p *libcontainer.Process, l spec.Limits) (*libcontainer.Container, error) {
	config, err := Convert(s, h, id)
	if err != nil {
		return nil, err
	}
	// sealRoot has already done more than this.
	config.Readonlyfs = false
	c, err := libcontainer.Create(dir, id, config)
	if err != nil {
		return nil, fmt.Errorf("creating the sandbox: %w", err)
	}
	if h.Cgroup.Driver != host.CgroupNone {
		state, err := c.State()
		if err == nil {
			err = NoteCgroup(dir, id, config.Cgroups, state.CgroupPaths)
		}
		if err != nil {
			return c, fmt.Errorf("noting the sandbox's cgroup: %w", err)
		}
	}
	if err := c.Start(p); err != nil {
		return c, fmt.Errorf("starting the sandbox: %w", err)
	}
	if h.Cgroup.Memory && !h.Cgroup.V2 {
		m, err := cgroupOf(c)
		if err == nil {
			err = LimitSocketBuffers(m, l)
		}
		if err != nil {
			return c, err
		}
	}
	pid, err := p.Pid()
	if err == nil && !h.Cgroup.CPU {
		if err = r.Pin(pid, l.CPUs); err != nil {
			return c, fmt.Errorf("limiting the sandbox to its processors: %w", err)
		}
	}
	if err == nil {
		err = checkCovered(pid, h.Mounts)
	}
	if err != nil {
		return c, err
	}
	if err := c.Exec(); err != nil {
		return c, fmt.Errorf("starting the sandbox: %w", err)
	}
	return c, nil
}

// newProcess returns the first process as libcontainer wants it.
func newProcess(streams Streams, lifeline *os.File, s *specs.Spec) *libcontainer.Process {
	out := &libcontainer.Process{
		Args:       s.Process.Args,
		Env:        s.Process.Env,
		Cwd:        s.Process.Cwd,
		UID:        int(s.Process.User.UID),
		GID:        int(s.Process.User.GID),
		ExtraFiles: []*os.File{lifeline, lifeline}, // become spec.ControlFD and, in name, ResolverFD (makeResolver)
		Init:       true,
	}
	for _, l := range s.Process.Rlimits {
		out.Rlimits = append(out.Rlimits, configs.Rlimit{Type: spec.RlimitNumbers[l.Type], Hard: l.Hard, Soft: l.Soft})
	}
	// A nil *os.File in an interface is not nil.
	if streams.Stdin != nil {
		out.Stdin = streams.Stdin
	}
	if streams.Stdout != nil {
		out.Stdout = streams.Stdout
	}
	if streams.Stderr != nil {
		out.Stderr = streams.Stderr
	}
	return out
}

// NewID returns a random name for a sandbox.
func NewID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // which never fails
	return fmt.Sprintf("%x", b)
}

// idMapRefused reports whether a start failed because a file system does not
// support idmapped mounts.
func idMapRefused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "MOUNT_ATTR_IDMAP")
}

// program returns the file of this program from which sandboxes start. Once there is a
// copy, it stays in use.
func (r *Runtime) program(dir string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := os.Stat(r.copied); r.copied != "" && err == nil {
		return r.copied, nil
	}
	path, err := programFile(r.host.Exe, dir)
	if err == nil && path != r.host.Exe {
		r.copied = path
	}
	return path, err
}

// programFile returns exe, this program's file, or a copy of it in dir if the file has been
// replaced or not every user may execute it. After an upgrade, the parts of two versions
// would not fit together.
func programFile(exe, dir string) (path string, err error) {
	running, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("finding this program's file: %w", err)
	}
	file, err := os.Stat(exe)
	if err == nil && os.SameFile(running, file) && file.Mode().Perm()&0o005 == 0o005 {
		return exe, nil
	}
	copied := filepath.Join(dir, "init")
	if err := copyProgram(copied); err != nil {
		return "", fmt.Errorf("copying this program for sandboxes: %w", err)
	}
	return copied, nil
}

// copyProgram copies the running program, even if its file is gone.
func copyProgram(to string) (err error) {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer from.Close()
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_CLOEXEC, 0o700)
	if err != nil {
		return err
	}
	_, err = f.ReadFrom(from)
	// The sandbox's user runs it, whatever our umask is.
	if err = errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		os.Remove(to)
	}
	return err
}
