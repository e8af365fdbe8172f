package spec

import (
	"path"
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Sizes of the writable file systems, in bytes. With a cgroup they count toward the memory
// limit; without one they bound what code can fill.
const (
	tmpSize       = 64 << 20
	workspaceSize = 128 << 20
	shmSize       = 64 << 20
)

// Their numbers of files: an inode takes kernel memory.
const (
	tmpFiles       = 32 << 10
	workspaceFiles = 64 << 10
	shmFiles       = 8 << 10
)

// A Tmpfs is a writable file system that disappears with the sandbox.
type Tmpfs struct {
	Dest, Mode  string
	size, files int
}

// Writable are those of every sandbox. They are sticky, like /tmp, and not owned by the user:
// the IDs in mount options would have to be mapped, which they are not on a single-ID host.
var Writable = []Tmpfs{
	{"/dev/shm", "mode=1777", shmSize, shmFiles},
	{"/tmp", "mode=1777", tmpSize, tmpFiles},
	{"/workspace", "mode=1777", workspaceSize, workspaceFiles},
}

// Options returns the options of the file system, without the flags of the mount.
func (t Tmpfs) Options() []string {
	return []string{"size=" + strconv.Itoa(t.size), "nr_inodes=" + strconv.Itoa(t.files)}
}

// mounts lists the mounts over the read-only root, in order.
func mounts(p Process, h Host) []specs.Mount {
	mount := func(t Tmpfs, options ...string) specs.Mount {
		options = append(append(options, t.Mode, "noexec", "nosuid", "nodev"), t.Options()...)
		return specs.Mount{Destination: t.Dest, Type: "tmpfs", Source: "tmpfs", Options: options}
	}
	proc := specs.Mount{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "noexec", "nodev"}}
	if h.NoProc {
		// libcontainer requires one. The nested stage covers it before the code runs
		// (nesteduserns.go).
		proc = specs.Mount{Destination: "/proc", Type: "bind", Source: "/proc", Options: []string{"rbind", "nosuid", "noexec", "nodev"}}
	}
	out := []specs.Mount{
		proc,
		// Made read-only once it is filled, since on a single-ID host the code's user owns
		// it. The devices are separate mounts.
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"ro", "nosuid", "noexec", "nodev", "mode=755", "size=65536", "nr_inodes=64"}},
	}
	for _, b := range p.Root.Binds {
		out = append(out, readOnlyTree(b, h))
	}
	if p.Resolver { // before /tmp covers it
		m := readOnlyBind(Bind{path.Join(p.Root.Dir, ResolverFile), "/etc/resolv.conf"})
		m.Options = append(m.Options, "noexec")
		out = append(out, m)
	}
	for _, t := range Writable {
		out = append(out, mount(t))
	}
	// It has the mount points of our own files, since the root is read-only by now.
	out = append(out, mount(Tmpfs{OwnDir, "mode=755", 4096, 64}, "ro"))
	for _, b := range p.Binds {
		out = append(out, readOnlyBind(b))
	}
	for _, b := range coverBinds(p, h) {
		out = append(out, readOnlyBind(b))
	}
	out = append(out, hostMounts(h)...)
	return append(out, readOnlyBind(Bind{Source: h.Exe, Target: pid1Path}))
}

// readOnlyTree binds a part of the root file system with its submounts: distributions, WSL 2
// and graphics drivers mount below /usr. Only Linux 5.12 and later can make all of that
// read-only; for older kernels see container.checkTrees.
func readOnlyTree(b Bind, h Host) specs.Mount {
	m := readOnlyBind(b)
	if h.Recursive {
		m.Options = append(m.Options, "rro", "rnosuid", "rnodev")
		m.Options[0] = "rbind"
	}
	return m
}

// readOnlyBind binds a directory or file of the host without its submounts.
func readOnlyBind(b Bind) specs.Mount {
	return specs.Mount{
		Destination: path.Clean(b.Target), Type: "bind", Source: b.Source,
		Options: []string{"bind", "ro", "nosuid", "nodev"},
	}
}

// ownTop are the names at the top of a root that are not the image's files. The first four
// are the sandbox's own; it has no /sys.
var ownTop = []string{"dev", "proc", "tmp", "workspace", "sys"}

// IsOwnTop reports whether a name at the top of a root directory is not the image's file.
func IsOwnTop(name string) bool { return slices.Contains(ownTop, name) }

// Readable returns the paths below which Landlock lets code read and execute: what the
// specification puts into the sandbox. pid1.c (landlock) adds the code's own folders. Other
// mounts, and files reached through a descriptor of the host, cannot be read.
func Readable(p Process, h Host) []string {
	all := []string{OwnDir}
	for _, name := range p.Top {
		all = append(all, path.Join("/", name))
	}
	for _, b := range p.Root.Binds {
		all = append(all, path.Clean(b.Target))
	}
	for _, m := range h.Mounts {
		if !OnTmpfs(m.Target) || m.Exec { // Landlock lets code read what is on those, but not execute it
			all = append(all, path.Clean(m.Target))
		}
	}
	if slices.ContainsFunc(all, func(place string) bool { return strings.Contains(place, ":") }) {
		return []string{"/"} // a file of the image that cannot be passed to pid 1 (pid1.c, allow_list)
	}
	return Uppermost(all)
}

// Uppermost returns the clean paths that are not below others, each once.
func Uppermost(paths []string) (out []string) {
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		if !slices.ContainsFunc(out, func(above string) bool { return strings.HasPrefix(p, strings.TrimSuffix(above, "/")+"/") }) {
			out = append(out, p)
		}
	}
	return out
}
