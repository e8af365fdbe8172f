package spec

import (
	"reflect"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// TestCallsAreAllowedByTheirArguments: for code, and for a template, which makes a sandbox
// of each fork. A value with upper bits is what the kernel makes of its lower half.
func TestCallsAreAllowedByTheirArguments(t *testing.T) {
	const (
		upper   = 1 << 32
		no, yes = false, true
		mptcp   = 262        // IPPROTO_MPTCP
		limit   = 0x7fff0000 // address of a limit
	)
	code, err := SeccompProfile(Uncounted{memory: true, cpu: true, freezer: true})
	if err != nil {
		t.Fatal(err)
	}
	template, err := SeccompProfile(Uncounted{memory: true, cpu: true, freezer: true, Template: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name               string
		args               []uint64
		byCode, byTemplate bool
	}{
		{"clone", []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, yes, yes},
		{"clone", []uint64{unix.CLONE_NEWUSER}, no, yes},
		{"clone", []uint64{unix.CLONE_NEWNS | unix.CLONE_NEWPID}, no, yes},
		{"unshare", nil, no, yes},
		{"mount", nil, no, yes},
		{"keyctl", nil, no, yes},
		{"umount2", nil, no, no},
		{"setns", nil, no, no},
		{"bpf", nil, no, no},
		{"seccomp", nil, no, no},
		{"ptrace", nil, no, no},
		{"memfd_create", nil, no, no},
		{"prctl", []uint64{unix.PR_SET_NAME}, yes, yes},
		{"prctl", []uint64{unix.PR_SET_SECCOMP}, no, yes},
		{"prctl", []uint64{upper | unix.PR_SET_SECCOMP}, no, yes},
		{"prctl", []uint64{unix.PR_CAPBSET_DROP}, no, yes},
		{"prctl", []uint64{unix.PR_SET_MM}, no, no},
		{"ioctl", []uint64{0, unix.TIOCGWINSZ}, yes, yes},
		{"ioctl", []uint64{0, unix.SIOCGIFFLAGS}, yes, yes},
		{"ioctl", []uint64{0, unix.SIOCSIFFLAGS}, no, yes},
		{"ioctl", []uint64{0, unix.SIOCSIFADDR}, no, no},
		{"ioctl", []uint64{0, unix.TIOCSTI}, no, no},
		{"ioctl", []uint64{0, upper | unix.TIOCSTI}, no, no},
		{"setrlimit", []uint64{unix.RLIMIT_NOFILE, limit}, yes, yes},
		{"setrlimit", []uint64{unix.RLIMIT_STACK, limit}, yes, yes},
		{"setrlimit", []uint64{unix.RLIMIT_CORE, limit}, no, yes},
		{"setrlimit", []uint64{upper | unix.RLIMIT_CORE, limit}, no, yes},
		{"prlimit64", []uint64{0, unix.RLIMIT_NPROC, limit}, yes, yes},
		{"prlimit64", []uint64{0, unix.RLIMIT_CORE, 0}, yes, yes}, // reads
		{"prlimit64", []uint64{0, unix.RLIMIT_CORE, limit}, no, yes},
		{"socket", []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, yes, yes},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, 0}, yes, yes},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP}, yes, yes},
		{"socket", []uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP}, yes, yes},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, no, no},
		{"socket", []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, no, no},
		{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, mptcp}, no, no},
		{"socket", []uint64{unix.AF_UNIX, unix.SOCK_STREAM, unix.IPPROTO_TCP}, no, no},
		{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, 0}, no, no},
		{"socket", []uint64{unix.AF_PACKET, unix.SOCK_RAW, 0}, no, no},
		{"socket", []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, no, no},
		{"socket", []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, no, no},
		{"socketpair", []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, yes, yes},
		{"socketpair", []uint64{unix.AF_TIPC, unix.SOCK_STREAM, 0}, no, no},
		{"fcntl", []uint64{3, unix.F_SETFL}, yes, yes},
		{"fcntl", []uint64{3, unix.F_GETSIG}, yes, yes},
		{"fcntl", []uint64{3, unix.F_OFD_SETLKW}, yes, yes},
		{"fcntl", []uint64{3, unix.F_GETLEASE}, yes, yes},
		{"fcntl", []uint64{3, unix.F_DUPFD_CLOEXEC}, yes, yes},
		{"fcntl", []uint64{3, unix.F_ADD_SEALS}, yes, yes},
		{"fcntl", []uint64{3, unix.F_SETSIG}, no, no},
		{"fcntl", []uint64{3, upper | unix.F_SETSIG}, no, no},
		{"fcntl", []uint64{3, unix.F_SETLEASE}, no, no},
		{"fcntl", []uint64{3, unix.F_NOTIFY}, no, no},
		{"setsockopt", []uint64{3, unix.IPPROTO_IP, unix.IP_TTL}, yes, yes},
		{"setsockopt", []uint64{3, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP}, yes, yes},
		{"setsockopt", []uint64{3, unix.IPPROTO_IP, unix.IP_OPTIONS}, no, no},
		{"setsockopt", []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY}, yes, yes},
		{"setsockopt", []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP}, yes, yes},
		{"setsockopt", []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_RTHDR}, no, no},
		{"sendto", []uint64{3, 0, 0, unix.MSG_NOSIGNAL}, yes, yes},
		{"sendto", []uint64{3, 0, 0, unix.MSG_NOSIGNAL | unix.MSG_OOB}, no, no},
		{"recvmsg", []uint64{3, 0, unix.MSG_OOB}, no, no},
		{"personality", []uint64{0xffffffff}, yes, yes},
		{"personality", []uint64{0x0040000}, no, no}, // ADDR_NO_RANDOMIZE
	} {
		if _, reaches := answer(code, tt.name, tt.args...); reaches != tt.byCode {
			t.Errorf("%s%#x of code reaches the kernel: %t", tt.name, tt.args, reaches)
		}
		if _, reaches := answer(template, tt.name, tt.args...); reaches != tt.byTemplate {
			t.Errorf("%s%#x of a template reaches the kernel: %t", tt.name, tt.args, reaches)
		}
	}
}

// TestServersHaveTheCallsOfCodeAndThree: everything else of their filter is that of code.
func TestServersHaveTheCallsOfCodeAndThree(t *testing.T) {
	un := Uncounted{memory: true, cpu: true, freezer: true}
	code, err := SeccompProfile(un)
	if err != nil {
		t.Fatal(err)
	}
	un.Server = true
	server, err := SeccompProfile(un)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []uint64
		want bool
	}{
		{"inotify_init1", nil, true},
		{"inotify_add_watch", nil, true},
		{"fanotify_mark", nil, false},
		{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, true},
		{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, false},
		{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT}, false},
		{"socket", []uint64{unix.AF_PACKET, unix.SOCK_RAW, 0}, false},
		{"io_uring_setup", nil, false},
		{"ptrace", nil, false},
		{"userfaultfd", nil, false},
		{"io_setup", nil, false},
		{"unshare", nil, false},
	} {
		if _, reaches := answer(server, tt.name, tt.args...); reaches != tt.want {
			t.Errorf("%s%#x of a server reaches the kernel: %t", tt.name, tt.args, reaches)
		}
	}
	rest := slices.DeleteFunc(slices.Clone(server.Syscalls), func(r specs.LinuxSyscall) bool {
		return slices.Equal(r.Names, watchers) || slices.Equal(r.Names, []string{"socket"}) && r.Args[0].ValueTwo == unix.AF_NETLINK
	})
	if !reflect.DeepEqual(rest, code.Syscalls) {
		t.Error("the filters of servers and of code differ in more than these calls")
	}
}

// TestTemplateGivesOnlyTheIDsOfForks: ID 0 would be the user who runs toolcell.
func TestTemplateGivesOnlyTheIDsOfForks(t *testing.T) {
	const uid, same, fork, end = 65534, 1<<32 - 1, FirstForkUID, FirstForkUID + host.MaxOwnIDs
	p, err := SeccompProfile(Uncounted{Template: true})
	if err != nil {
		t.Fatal(err)
	}
	LimitSetUID(p, uid)
	for _, tt := range []struct {
		name    string
		args    []uint64
		allowed bool
	}{
		{"setuid", []uint64{uid}, true},
		{"setuid", []uint64{0}, false},
		{"setuid", []uint64{fork}, false}, // would also be the saved one, and last
		{"setfsuid", []uint64{uid}, true},
		{"setfsuid", []uint64{0}, false},
		{"setreuid", []uint64{uid, uid}, true},
		{"setreuid", []uint64{same, uid}, true},
		{"setreuid", []uint64{0, same}, false},
		{"setreuid", []uint64{same, 0}, false},
		{"setreuid", []uint64{same, fork}, false},
		{"setresuid", []uint64{uid, uid, uid}, true},
		{"setresuid", []uint64{same, uid, same}, true},
		{"setresuid", []uint64{same, fork, same}, true},
		{"setresuid", []uint64{same, end - 1, same}, true},
		{"setresuid", []uint64{same, end, same}, false},
		{"setresuid", []uint64{same, fork - 1, same}, false},
		{"setresuid", []uint64{fork, fork, fork}, false},
		{"setresuid", []uint64{same, fork, fork}, false},
		{"setresuid", []uint64{0, 0, 0}, false},
		{"setresuid", []uint64{same, 0, same}, false},
		{"setresuid", []uint64{same, 1 << 32, same}, false}, // 0 for the kernel
		{"setresuid", []uint64{uid, uid, 0}, false},
	} {
		if _, reaches := answer(p, tt.name, tt.args...); reaches != tt.allowed {
			t.Errorf("%s%d reaches the kernel: %t", tt.name, tt.args, reaches)
		}
	}
}

// TestEachCallHasOneAnswer: with two, it would be libseccomp's choice which one counts. A rule
// without a name is no rule for runtime-spec.
func TestEachCallHasOneAnswer(t *testing.T) {
	for _, un := range everyUncounted() {
		p, err := SeccompProfile(un)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Architectures) > 1 {
			t.Errorf("%s: calls of %v are allowed, want those of the host's own alone", un, p.Architectures)
		}
		always := map[string]bool{}
		for _, r := range p.Syscalls {
			if len(r.Names) == 0 {
				t.Errorf("%s: a rule names no call: %+v", un, r)
			}
			for _, name := range r.Names {
				always[name] = always[name] || r.Action == specs.ActErrno && len(r.Args) == 0
			}
		}
		for _, r := range p.Syscalls {
			if i := slices.IndexFunc(r.Names, func(name string) bool { return always[name] }); i >= 0 && r.Action == specs.ActAllow {
				t.Errorf("%s: %s is refused and allowed", un, r.Names[i])
			}
		}
	}
}

func everyUncounted() (all []Uncounted) {
	for i := range 32 {
		all = append(all, Uncounted{memory: i&1 > 0, cpu: i&2 > 0, freezer: i&4 > 0, Template: i&8 > 0, Server: i&16 > 0})
	}
	return all
}

func TestUncountedReachesTheStage(t *testing.T) {
	for _, un := range everyUncounted() {
		if got, err := ParseUncounted(un.String()); err != nil || got != un {
			t.Errorf("%q is read as %+v, %v", un, got, err)
		}
	}
	if _, err := ParseUncounted("memory"); err == nil {
		t.Error("what is no such text is read")
	}
}

// TestTimersNeedAFreezer: without one, a timer's SIGCONT could continue what pid 1 stopped.
func TestTimersNeedAFreezer(t *testing.T) {
	for freezer, want := range map[bool]unix.Errno{false: 0, true: unix.ENOSYS} {
		p, err := SeccompProfile(Uncounted{freezer: freezer})
		if err != nil {
			t.Fatal(err)
		}
		if errno, reaches := answer(p, "timer_create"); errno != want || reaches == freezer {
			t.Errorf("uncounted %t: answers %v, reaches the kernel: %t", freezer, errno, reaches)
		}
	}
}
