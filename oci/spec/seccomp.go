package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moby/profiles/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// SeccompProfile returns the Moby project's default profile, reduced to what a process
// without capabilities may do, and further to what Python needs. Moby's refuses, among
// others, new namespaces, mounts, bpf, keyctl and userfaultfd; clone3 fails with ENOSYS so
// that glibc falls back to clone, whose flags a filter can see.
//
// It refuses calls that allocate memory which no cgroup counts on this host, and if no cgroup
// freezes, timers whose signal could be SIGCONT (pid1.c). Forks load the same profile as
// containers. A template may also make the calls that create forks, and a server those of
// watchers.
func SeccompProfile(un Uncounted) (*specs.LinuxSeccomp, error) {
	none := &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{}}}
	p, err := seccomp.GetDefaultProfile(none)
	if err != nil {
		return nil, fmt.Errorf("making the seccomp profile: %w", err)
	}
	harden(p, un)
	if un.Server {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: watchers, Action: specs.ActAllow})
	}
	if un.memory {
		forbid(p, hidden)
	}
	if un.cpu {
		forbid(p, []string{"sched_setaffinity"}) // see pin
	}
	if un.freezer {
		forbid(p, []string{"timer_create"})
		noSuchCall := uint(unix.ENOSYS) // programs then use setitimer
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{"timer_create"}, Action: specs.ActErrno, ErrnoRet: &noSuchCall})
	}
	if un.Template {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: makers, Action: specs.ActAllow})
	}
	return p, nil
}

// makers are the calls that make a sandbox of a fork (fork.py).
var makers = []string{"clone", "unshare", "mount", "keyctl"}

// Uncounted says what no cgroup counts on a host, freezer that none freezes, and Template and
// Server that the filter is for a template or a server.
type Uncounted struct{ memory, cpu, freezer, Template, Server bool }

// UncountedBy returns what a cgroup does not count.
func UncountedBy(c host.Cgroup) Uncounted {
	return Uncounted{memory: !c.Memory, cpu: !c.CPU, freezer: !c.Freezes()}
}

// String encodes it for the stage that loads the filter.
func (u Uncounted) String() string {
	text := fmt.Sprintf("memory=%t,cpu=%t,freezer=%t", u.memory, u.cpu, u.freezer)
	if u.Template {
		text += ",template"
	}
	if u.Server {
		text += ",server"
	}
	return text
}

// ParseUncounted reads what String returns.
func ParseUncounted(s string) (u Uncounted, err error) {
	s, u.Server = strings.CutSuffix(s, ",server")
	s, u.Template = strings.CutSuffix(s, ",template")
	_, err = fmt.Sscanf(s, "memory=%t,cpu=%t,freezer=%t", &u.memory, &u.cpu, &u.freezer)
	return u, err
}

// refused are calls that Moby's profile allows and no Python program needs; each has been
// used to attack the kernel, or looks into other processes.
var refused = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "pidfd_getfd", "kcmp",
	"io_uring_setup", "io_uring_enter", "io_uring_register",
	"name_to_handle_at", "fanotify_mark", "remap_file_pages", "vmsplice", "modify_ldt",
	// These take the arguments of other calls from memory, which a filter cannot see.
	"socketcall", "ipc",
	// See prctls, in seccompargs.go.
	"seccomp",
	// Their contexts are counted for the whole host (fs.aio-max-nr).
	"io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents", "io_pgetevents_time64",
	// They reveal which pages of a shared file are in memory: what others have read.
	"mincore", "cachestat",
	// Called in a loop, they keep the host's disks writing. The sandbox's only lasting files
	// are those in mounts, for which there is fsync.
	"sync", "syncfs", "sync_file_range", "sync_file_range2",
	// With RESOLVE_CACHED, which a filter cannot see, it reveals which names of a shared
	// directory are in memory.
	"openat2",
}

// watchers are for servers alone, which watch the folders that they are shown (fs.watch of
// Node.js). Files of the root are shared: a watcher sees what other sandboxes open and run, and
// with the host's own Python also the host.
var watchers = []string{"inotify_init", "inotify_init1", "inotify_add_watch"}

// answered returns rules for calls that are refused for some or all arguments, but that
// programs do not expect to fail with EPERM: the filter answers like a kernel that lacks
// them or ignores advice.
func answered() []specs.LinuxSyscall {
	answer := func(errno unix.Errno, rule callRule, names ...string) specs.LinuxSyscall {
		ret := uint(errno)
		return specs.LinuxSyscall{Names: names, Action: specs.ActErrno, ErrnoRet: &ret, Args: rule}
	}
	return []specs.LinuxSyscall{
		answer(0, nil, "sync"), // it cannot fail
		answer(unix.ENOSYS, nil, "sync_file_range", "sync_file_range2", "openat2"),
		answer(unix.EOPNOTSUPP, bit(5, unix.RWF_NOWAIT), "preadv2", "pwritev2"),
		answer(unix.EOPNOTSUPP, bit(5, unix.RWF_DONTCACHE), "preadv2", "pwritev2"),
		answer(0, callRule{equal(3, unix.FADV_DONTNEED)}, "fadvise64"),
	}
}

// hidden are calls whose memory belongs to no process: files without a name,
// and the shared memory, messages and semaphores of System V and POSIX.
var hidden = []string{"memfd_create", "memfd_secret", "shmget", "shmat", "msgget", "msgsnd", "semget", "mq_open"}

// harden removes calls from the profile.
func harden(p *specs.LinuxSeccomp, un Uncounted) {
	forbid(p, refused)
	forbid(p, watchers)
	allowByArguments(p, un)
	p.Syscalls = append(p.Syscalls, answered()...)
	// Python does not use the 32-bit calls of a 64-bit kernel, a second attack surface. The
	// first architecture is the host's own.
	if len(p.Architectures) > 1 {
		p.Architectures = p.Architectures[:1]
	}
}

// forbid removes names from the rules that allow calls.
func forbid(p *specs.LinuxSeccomp, names []string) {
	for i, rule := range p.Syscalls {
		if rule.Action == specs.ActAllow {
			p.Syscalls[i].Names = slices.DeleteFunc(slices.Clone(rule.Names), func(name string) bool {
				return slices.Contains(names, name)
			})
		}
	}
	p.Syscalls = slices.DeleteFunc(p.Syscalls, func(r specs.LinuxSyscall) bool { return len(r.Names) == 0 })
}
