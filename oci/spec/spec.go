// Package spec writes a sandbox down as an OCI runtime specification. It is
// pure: its output depends on a Process and a Host alone, and the golden files
// in testdata show it for each kind of host.
package spec

import (
	"fmt"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// oomScoreAdj makes the kernel kill a sandbox before any process of the host when the host's
// memory runs out (proc(5), oom_score_adj).
var oomScoreAdj = 1000

// New returns the specification of a sandbox for p on h; id names its cgroup.
func New(p Process, h Host, id string) *specs.Spec {
	uid, gid := h.InsideUID, h.InsideGID
	args := append([]string{pid1Path}, p.Args...)
	un, filter := UncountedBy(h.Cgroup), h.Seccomp
	if p.Template {
		un.Template, filter = true, h.TemplateSeccomp
	}
	un.Server = p.Server != nil
	lifeline := fmt.Sprintf("%s=%d:%d:%d:%d:%d:%d", pid1Env, ControlFD, digit(p.Control), digit(p.Template), digit(p.Server != nil), h.LimitOf(unix.RLIMIT_NOFILE, maxFiles), Niceness(h))
	// libcontainer would look for a home in the image's /etc/passwd.
	env := []string{lifeline, readEnv + "=" + strings.Join(Readable(p, h), ":"), "HOME=/workspace"}
	env = append(env, hiddenFromStages(p.Env)...)
	if targets := h.WritableTargets(); len(targets) > 0 {
		env = append([]string{writeEnv + "=" + strings.Join(targets, ":")}, env...)
	}
	// Empty, not nil: libcontainer keeps every capability when it is nil
	// (capabilities.New).
	caps := &specs.LinuxCapabilities{}
	if h.nested() {
		// Only one ID is mapped. The process starts as container root, without
		// capabilities, and our own stage creates a nested user namespace in which
		// that ID has the requested number (nesteduserns.go).
		args = append([]string{pid1Path, "nest", un.String()}, args...)
		env = append([]string{fmt.Sprintf("%s=%d:%d:%d", NestedEnv, uid, gid, digit(h.NoProc))}, env...)
		uid, gid = 0, 0
		// Since Linux 5.12 only a process with this capability may map ID 0 of the
		// parent into a child (user_namespaces(7)). The stage loses it when it
		// enters the child, before any user code runs.
		one := []string{"CAP_SETFCAP"}
		caps = &specs.LinuxCapabilities{Bounding: one, Effective: one, Permitted: one}
	}
	s := &specs.Spec{
		Version: specs.Version,
		Root:    &specs.Root{Path: p.Root.Dir, Readonly: true},
		Process: &specs.Process{
			User:            specs.User{UID: uid, GID: gid},
			Args:            args,
			Env:             env,
			Cwd:             p.Server.workingDir(),
			Capabilities:    caps,
			NoNewPrivileges: true,
			Rlimits:         pid1Rlimits(p, h),
			OOMScoreAdj:     &oomScoreAdj,
		},
		Hostname: "toolcell",
		Mounts:   mounts(p, h),
		Linux: &specs.Linux{
			UIDMappings: mappings(h.UIDs, h.InsideUID),
			GIDMappings: mappings(h.GIDs, h.InsideGID),
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.UserNamespace},
				{Type: specs.MountNamespace},
				{Type: specs.PIDNamespace},
				{Type: specs.NetworkNamespace},
				{Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace},
				{Type: specs.CgroupNamespace},
			},
			MaskedPaths:   MaskedPaths(h),
			ReadonlyPaths: ReadonlyPaths,
			CgroupsPath:   h.Cgroup.Path(id),
			Resources:     resources(p.Limits, h.Cgroup),
			Sysctl:        Sysctls(h),
			// Mounts made on the host while the sandbox runs must not appear inside.
			RootfsPropagation: "rprivate",
		},
	}
	if p.Server != nil {
		limitWatchers(s, h)
	}
	if !h.nested() {
		s.Linux.Seccomp = filter
	}
	if own := h.ForkUIDs(); p.Template && own.Size > 0 {
		// The filter restricts this capability to giving each fork one of these IDs
		// (fork.py, LimitSetUID).
		s.Linux.UIDMappings = append(s.Linux.UIDMappings, specs.LinuxIDMapping{ContainerID: FirstForkUID, HostID: uint32(own.Start), Size: uint32(own.Size)})
		one := []string{"CAP_SETUID"}
		s.Process.Capabilities = &specs.LinuxCapabilities{Bounding: one, Effective: one, Permitted: one, Inheritable: one, Ambient: one}
	}
	if p.Template {
		// The kernel refuses to mount a /proc while parts of the current one are covered
		// (mount_namespaces(7)); the forks cover their own.
		s.Linux.MaskedPaths = coveredMounts(h)
		s.Linux.ReadonlyPaths = slices.DeleteFunc(slices.Clone(ReadonlyPaths), InProc)
	}
	return s
}

// digit encodes a fact for pid1.c.
func digit(fact bool) int {
	if fact {
		return 1
	}
	return 0
}

// hiddenFromStages renames the program's variables; pid1.c restores the names for the
// program. Otherwise the image's environment would affect every stage before: nsenter
// (_LIBCONTAINER_INITPIPE), Go's runtime (GODEBUG), the C library (GLIBC_TUNABLES), and
// pid1.c itself.
//
// Variables with a name of ours or libcontainer's are dropped: the program might start
// something that acts on them.
func hiddenFromStages(env []string) (out []string) {
	for _, kv := range env {
		if !strings.HasPrefix(kv, ownEnv) && !strings.HasPrefix(kv, "_LIBCONTAINER_") {
			out = append(out, programEnv+kv)
		}
	}
	return out
}

// mappings returns the map in the form of runtime-spec; want is the container ID that the
// code runs as.
func mappings(m host.IDMap, want uint32) []specs.LinuxIDMapping {
	out := []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(m.Root), Size: 1}}
	if m.User >= 0 && want != 0 {
		out = append(out, specs.LinuxIDMapping{ContainerID: want, HostID: uint32(m.User), Size: 1})
	}
	return out
}

// A Process describes what to run, and in which sandbox.
type Process struct {
	Root   Root
	Binds  []Bind // below /run/toolcell
	Args   []string
	Env    []string // complete: nothing is inherited
	Limits Limits
	Python *Python // how to start it in advance; nil if that is impossible
	// Control gives the process a stream socket to the host, as descriptor 3.
	Control  bool
	Template bool     // sandboxes are forked from it
	Top      []string // names at the top of Root.Dir that have files
	Resolver bool     // the root has a /etc/resolv.conf, to be covered by the sandbox's own
	Proc     string   // folder of the host with substitutes for CoveredFiles, or ""
	Project  *Project // folder of the host that it can read; nil is none
	Server   *Server  // what it has as a server; nil for code
}

// A Root is the root file system of a sandbox.
type Root struct {
	Dir   string // on the host, absolute, without symbolic links
	Binds []Bind // mounted on it, in addition to the usual mounts
}

// A Bind is a read-only bind mount of a file or directory of the host.
type Bind struct {
	Source string // on the host, absolute, without symbolic links
	Target string // in the sandbox, absolute
}

// A Mount is a folder or file of the host in every sandbox.
type Mount struct {
	Source   string // on the host, absolute, without symbolic links
	Target   string // in the sandbox, absolute; the root has a mount point for it
	Writable bool
}

// A Python describes how to start a Python program in advance (fork.py): a file that defines
// main, which returns the exit code, and calls it if its __name__ is __main__.
type Python struct {
	Interpreter []string // its path inside, and its options
	Program     string   // its path inside
	Base        []string // modules to import in advance, if they exist
	Preload     []string // modules that the user wants imported in advance
	// Alone means that the modules of Preload are as untrusted as code: each sandbox imports
	// them itself, and none is forked from a template.
	Alone bool
}
