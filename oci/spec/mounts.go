package spec

import (
	"path"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Sizes of the writable places, in bytes. They count against the memory limit
// where there is a cgroup, and bound what code can fill where there is none.
const (
	tmpSize       = 64 << 20
	workspaceSize = 128 << 20
	shmSize       = 64 << 20
)

// And how many files they take: an inode is kernel memory.
const (
	tmpFiles       = 32 << 10
	workspaceFiles = 64 << 10
	shmFiles       = 8 << 10
)

// A Tmpfs is a place that can be written, and that vanishes with the sandbox.
type Tmpfs struct {
	Dest, Mode  string
	size, files int
}

// Writable are those of every sandbox. They are sticky, as /tmp, and not owned
// by the user: the ids of the mount options would have to be mapped, and where
// only one is, they are not.
var Writable = []Tmpfs{
	{"/dev/shm", "mode=1777", shmSize, shmFiles},
	{"/tmp", "mode=1777", tmpSize, tmpFiles},
	{"/workspace", "mode=1777", workspaceSize, workspaceFiles},
}

// Options are those of the file system, beside the flags of the mount.
func (t Tmpfs) Options() []string {
	return []string{"size=" + strconv.Itoa(t.size), "nr_inodes=" + strconv.Itoa(t.files)}
}

// mounts lists what is laid over the read-only root, in order.
func mounts(p Process, h Host) []specs.Mount {
	mount := func(t Tmpfs, options ...string) specs.Mount {
		options = append(append(options, t.Mode, "noexec", "nosuid", "nodev"), t.Options()...)
		return specs.Mount{Destination: t.Dest, Type: "tmpfs", Source: "tmpfs", Options: options}
	}
	proc := specs.Mount{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}}
	if h.NoProc {
		// libcontainer does not start without one. The nested stage covers it
		// before the code runs (nesteduserns.go).
		proc = specs.Mount{Destination: "/proc", Type: "bind", Source: "/proc", Options: []string{"rbind", "nosuid", "noexec", "nodev"}}
	}
	out := []specs.Mount{
		proc,
		// Made read-only once it is filled: where only one id is mapped, the
		// code's user owns it. The devices are mounts of their own.
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"ro", "nosuid", "noexec", "nodev", "mode=755", "size=65536", "nr_inodes=64"}},
	}
	for _, t := range Writable {
		out = append(out, mount(t))
	}
	// The mount points of our own files are made in it, since the root is
	// read-only by now.
	out = append(out, mount(Tmpfs{OwnDir, "mode=755", 4096, 64}, "ro"))
	for _, b := range p.Root.Binds {
		out = append(out, readOnlyTree(b, h))
	}
	for _, b := range p.Binds {
		out = append(out, readOnlyBind(b))
	}
	for _, b := range coverBinds(p, h) {
		out = append(out, readOnlyBind(b))
	}
	out = append(out, hostMounts(h)...)
	return append(out, readOnlyBind(Bind{Source: h.Exe, Target: pid1Path}))
}

// readOnlyTree shows a part of the root file system with what is mounted below it:
// distributions, WSL 2 and drivers of graphics cards mount below /usr. To make all of
// that read-only the kernel has to be able to (Linux 5.12); container.checkTree says
// what follows where it is not.
func readOnlyTree(b Bind, h Host) specs.Mount {
	m := readOnlyBind(b)
	if h.Recursive {
		m.Options = append(m.Options, "rro", "rnosuid", "rnodev")
		m.Options[0] = "rbind"
	}
	return m
}

// readOnlyBind shows a directory or file of the host, with nothing of what is
// mounted below it: a plain bind leaves submounts out.
func readOnlyBind(b Bind) specs.Mount {
	return specs.Mount{
		Destination: path.Clean(b.Target), Type: "bind", Source: b.Source,
		Options: []string{"bind", "ro", "nosuid", "nodev"},
	}
}
