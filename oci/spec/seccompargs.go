package spec

import (
	"maps"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// A callRule allows a call with certain arguments. If a call has several
// rules, one of them has to match.
//
// Rules only allow and never refuse: a filter sees 64 bits of an argument, the kernel often
// uses only 32, and set upper bits could hide a refused value.
type callRule []specs.LinuxSeccompArg

// equal compares the 32 bits that the kernel uses: C libraries differ in the others.
func equal(arg uint, value uint64) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: arg, Value: 0xffffffff, ValueTwo: value, Op: specs.OpMaskedEqual}
}

// bit matches if a bit of an argument is set.
func bit(arg uint, value uint64) callRule {
	return callRule{{Index: arg, Value: value, ValueTwo: value, Op: specs.OpMaskedEqual}}
}

// without matches if no bits of the lower half of an argument are set except those in value.
func without(arg uint, value uint64) callRule {
	return callRule{{Index: arg, Value: 0xffffffff &^ value, ValueTwo: 0, Op: specs.OpMaskedEqual}}
}

func atMost(arg uint, value uint64) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: arg, Value: value, Op: specs.OpLessEqual}
}

// inBand matches flags of a message without MSG_OOB: out-of-band data on unix sockets has its
// own queue in the kernel (CVE-2025-38236), and nothing needs it.
func inBand(arg uint) callRule {
	return callRule{{Index: arg, Value: unix.MSG_OOB, ValueTwo: 0, Op: specs.OpMaskedEqual}}
}

// allowByArguments restricts some calls to some arguments. For a template it adds what makes
// a sandbox of a fork (fork.py), and for a server a socket that lists the sandbox's own network
// interfaces (os.networkInterfaces() of Node.js; rtnetlink(7)).
func allowByArguments(p *specs.LinuxSeccomp, un Uncounted) {
	rules := argumentRules()
	if un.Server {
		rules["socket"] = append(rules["socket"], callRule{equal(0, unix.AF_NETLINK), equal(2, unix.NETLINK_ROUTE)})
	}
	if un.Template {
		rules["prctl"] = append(rules["prctl"], oneOf(0, unix.PR_SET_SECCOMP, unix.PR_CAPBSET_DROP)...)
		rules["ioctl"] = append(rules["ioctl"], callRule{equal(1, unix.SIOCSIFFLAGS)})
		rules["setrlimit"] = []callRule{{}}
		rules["prlimit64"] = []callRule{{}}
	}
	replaceRules(p, rules)
}

// replaceRules allows calls only by these rules.
func replaceRules(p *specs.LinuxSeccomp, rules map[string][]callRule) {
	names := slices.Sorted(maps.Keys(rules))
	forbid(p, names)
	for _, name := range names {
		for _, args := range rules[name] {
			p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{name}, Action: specs.ActAllow, Args: args})
		}
	}
}

// LimitSetUID limits a template with CAP_SETUID to the effective IDs of its forks and to uid,
// which it and they have. ID 0 would be the user who runs toolcell.
func LimitSetUID(p *specs.LinuxSeccomp, uid uint32) {
	const same = 0xffffffff // -1
	either := []uint64{uint64(uid), same}
	fork := specs.LinuxSeccompArg{Index: 1, Value: 0xffffffff &^ (host.MaxOwnIDs - 1), ValueTwo: FirstForkUID, Op: specs.OpMaskedEqual}
	rules := map[string][]callRule{
		"setuid":    oneOf(0, either...),
		"setfsuid":  oneOf(0, either...),
		"setresuid": {{equal(0, same), fork, equal(2, same)}},
	}
	for _, real := range either {
		for _, effective := range either {
			rules["setreuid"] = append(rules["setreuid"], callRule{equal(0, real), equal(1, effective)})
			for _, saved := range either {
				rules["setresuid"] = append(rules["setresuid"], callRule{equal(0, real), equal(1, effective), equal(2, saved)})
			}
		}
	}
	replaceRules(p, rules)
}

// oneOf allows each of the values of an argument.
func oneOf(arg uint, values ...uint64) []callRule {
	rules := make([]callRule, len(values))
	for i, v := range values {
		rules[i] = callRule{equal(arg, v)}
	}
	return rules
}

// from allows the values from first to last.
func from(arg uint, first, last uint64) (rules []callRule) {
	for v := first; v <= last; v++ {
		rules = append(rules, callRule{equal(arg, v)})
	}
	return rules
}

// argumentRules returns the calls for which only some arguments are allowed.
func argumentRules() map[string][]callRule {
	rules := map[string][]callRule{
		"socket":      sockets(),
		"socketpair":  {{equal(0, unix.AF_UNIX), equal(2, 0)}},
		"personality": {{equal(0, 0xffffffff)}}, // asks, and changes nothing
		"fcntl":       fcntls(),
		"ioctl":       oneOf(1, ioctls...),
		"prctl":       oneOf(0, prctls...),
		"setsockopt":  socketOptions(),
		"sendto":      {inBand(3)},
		"sendmsg":     {inBand(2)},
		"sendmmsg":    {inBand(3)},
		"recvfrom":    {inBand(3)},
		"recvmsg":     {inBand(2)},
		"recvmmsg":    {inBand(3)},
		// Files of the root are shared. Flags that read only what is in memory reveal what
		// others have read, and flags that drop it from memory would make this repeatable.
		"preadv2":   {without(5, unix.RWF_HIPRI|unix.RWF_DSYNC|unix.RWF_SYNC|unix.RWF_APPEND|unix.RWF_NOAPPEND)},
		"pwritev2":  {without(5, unix.RWF_HIPRI|unix.RWF_DSYNC|unix.RWF_SYNC|unix.RWF_APPEND|unix.RWF_NOAPPEND)},
		"fadvise64": oneOf(3, unix.FADV_NORMAL, unix.FADV_RANDOM, unix.FADV_SEQUENTIAL, unix.FADV_WILLNEED, unix.FADV_NOREUSE),
		// The limit on core files has a special purpose (Rlimits). Without new limits,
		// prlimit only reads.
		"setrlimit": oneOf(0, changeableLimits()...),
		"prlimit64": append(oneOf(1, changeableLimits()...), callRule{{Index: 2, Value: 0, Op: specs.OpEqualTo}}),
	}
	return rules
}

// sockets allows unix, TCP and UDP sockets: other protocols (MPTCP, SCTP, UDP-Lite, ICMP)
// would only expose more of the kernel, and load modules.
func sockets() []callRule {
	rules := []callRule{{equal(0, unix.AF_UNIX), equal(2, 0)}}
	for _, family := range []uint64{unix.AF_INET, unix.AF_INET6} {
		for _, protocol := range []uint64{0, unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			rules = append(rules, callRule{equal(0, family), equal(2, protocol)})
		}
	}
	return rules
}

// fcntls allows all commands except F_SETLEASE, which can delay a writer on the host,
// F_NOTIFY, the old way to watch a directory, and F_SETSIG, with which a write of the host
// could continue a stopped process (pid1.c).
func fcntls() []callRule {
	rules := []callRule{{atMost(1, unix.F_SETSIG-1)}, {equal(1, unix.F_GETLEASE)}}
	rules = append(rules, from(1, unix.F_SETSIG+1, unix.F_OFD_SETLKW)...)
	return append(rules, from(1, unix.F_NOTIFY+1, unix.F_NOTIFY+15)...)
}

// changeableLimits are the resources whose limits code may lower (getrlimit(2)).
func changeableLimits() (all []uint64) {
	for resource := range uint64(16) {
		if resource != unix.RLIMIT_CORE {
			all = append(all, resource)
		}
	}
	return all
}

// ioctls are common requests to terminals, pipes and files, and those that read the
// addresses of network interfaces. TIOCSTI, which types into a terminal, is not among them.
var ioctls = []uint64{
	unix.TCGETS, unix.TCSETS, unix.TCSETSW, unix.TCSETSF, unix.TCGETS2, unix.TCSETS2, unix.TCSETSW2, unix.TCSETSF2,
	unix.TCSBRK, unix.TCSBRKP, unix.TCXONC, unix.TCFLSH, unix.TIOCSCTTY, unix.TIOCNOTTY, unix.TIOCGPGRP, unix.TIOCSPGRP,
	unix.TIOCGSID, unix.TIOCOUTQ, unix.TIOCGWINSZ, unix.TIOCSWINSZ, unix.TIOCPKT, unix.TIOCGPTN, unix.TIOCSPTLCK, unix.TIOCGPTPEER,
	unix.TIOCINQ, fionbio, fionclex, fioclex, fioasync, unix.FICLONE, unix.FS_IOC_GETFLAGS, unix.RNDGETENTCNT,
	unix.SIOCATMARK, unix.SIOCGIFNAME, unix.SIOCGIFCONF, unix.SIOCGIFFLAGS, unix.SIOCGIFADDR, unix.SIOCGIFBRDADDR,
	unix.SIOCGIFNETMASK, unix.SIOCGIFMTU, unix.SIOCGIFHWADDR, unix.SIOCGIFINDEX,
}

// Requests for every descriptor (asm-generic/ioctls.h), which package unix lacks.
const (
	fionbio  = 0x5421
	fionclex = 0x5450
	fioclex  = 0x5451
	fioasync = 0x5452
)

// prctls are what a process may change and read of itself. Loading a filter is not allowed,
// neither here nor by seccomp(2): the kernel keeps all filters in memory that all programs
// share, and freeing thousands of them at once has blocked it permanently.
var prctls = []uint64{
	unix.PR_SET_PDEATHSIG, unix.PR_GET_PDEATHSIG, unix.PR_GET_DUMPABLE, unix.PR_SET_DUMPABLE, unix.PR_GET_KEEPCAPS,
	unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_GET_SECCOMP, unix.PR_CAPBSET_READ, unix.PR_GET_SECUREBITS,
	unix.PR_SET_TIMERSLACK, unix.PR_GET_TIMERSLACK, unix.PR_SET_CHILD_SUBREAPER, unix.PR_GET_CHILD_SUBREAPER,
	unix.PR_SET_NO_NEW_PRIVS, unix.PR_GET_NO_NEW_PRIVS, unix.PR_GET_TID_ADDRESS, unix.PR_SET_THP_DISABLE,
	unix.PR_GET_THP_DISABLE, unix.PR_CAP_AMBIENT, unix.PR_GET_SPECULATION_CTRL, unix.PR_SET_MDWE, unix.PR_GET_MDWE,
	unix.PR_SET_VMA, unix.PR_GET_AUXV, unix.PR_SET_PTRACER,
}

// socketOptions allows only what Python's libraries set on sockets: many other options have
// been used to attack the kernel, and some affect more than their socket. Filters
// (SO_ATTACH_FILTER and SO_ATTACH_BPF) are not among them, for the reason at prctls.
func socketOptions() (rules []callRule) {
	level := func(number uint64, options ...uint64) {
		for _, option := range options {
			rules = append(rules, callRule{equal(1, number), equal(2, option)})
		}
	}
	level(unix.SOL_SOCKET, unix.SO_REUSEADDR, unix.SO_REUSEPORT, unix.SO_BROADCAST, unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_KEEPALIVE,
		unix.SO_OOBINLINE, unix.SO_PRIORITY, unix.SO_LINGER, unix.SO_PASSCRED, unix.SO_RCVLOWAT, unix.SO_RCVTIMEO, unix.SO_SNDTIMEO,
		unix.SO_BINDTODEVICE, unix.SO_TIMESTAMP, unix.SO_TIMESTAMPNS, unix.SO_RXQ_OVFL)
	level(unix.IPPROTO_TCP, unix.TCP_NODELAY, unix.TCP_MAXSEG, unix.TCP_CORK, unix.TCP_KEEPIDLE, unix.TCP_KEEPINTVL, unix.TCP_KEEPCNT,
		unix.TCP_SYNCNT, unix.TCP_LINGER2, unix.TCP_DEFER_ACCEPT, unix.TCP_QUICKACK, unix.TCP_USER_TIMEOUT, unix.TCP_FASTOPEN,
		unix.TCP_NOTSENT_LOWAT)
	level(unix.IPPROTO_IP, unix.IP_TOS, unix.IP_TTL, unix.IP_PKTINFO, unix.IP_MTU_DISCOVER, unix.IP_RECVERR, unix.IP_RECVTOS,
		unix.IP_BIND_ADDRESS_NO_PORT, unix.IP_MULTICAST_IF, unix.IP_MULTICAST_TTL, unix.IP_MULTICAST_LOOP, unix.IP_ADD_MEMBERSHIP,
		unix.IP_DROP_MEMBERSHIP)
	level(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, unix.IPV6_UNICAST_HOPS, unix.IPV6_MULTICAST_IF, unix.IPV6_MULTICAST_HOPS,
		unix.IPV6_MULTICAST_LOOP, unix.IPV6_JOIN_GROUP, unix.IPV6_LEAVE_GROUP, unix.IPV6_MTU_DISCOVER, unix.IPV6_RECVERR,
		unix.IPV6_RECVPKTINFO, unix.IPV6_DONTFRAG, unix.IPV6_RECVTCLASS, unix.IPV6_TCLASS)
	return rules
}
