package spec

import (
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// answer says what a profile answers to a call with these arguments: 0 if it is
// allowed or seems to succeed, and whether the kernel sees it.
func answer(p *specs.LinuxSeccomp, name string, args ...uint64) (errno unix.Errno, reaches bool) {
	args = append(args, make([]uint64, 6-len(args))...)
	fits := func(r specs.LinuxSyscall) bool {
		return slices.Contains(r.Names, name) && !slices.ContainsFunc(r.Args, func(a specs.LinuxSeccompArg) bool {
			switch v := args[a.Index]; a.Op {
			case specs.OpMaskedEqual:
				return v&a.Value != a.ValueTwo
			case specs.OpLessEqual:
				return v > a.Value
			case specs.OpEqualTo:
				return v != a.Value
			}
			return true
		})
	}
	for _, r := range p.Syscalls {
		if fits(r) && r.Action == specs.ActErrno {
			return unix.Errno(*r.ErrnoRet), false
		}
	}
	if slices.ContainsFunc(p.Syscalls, func(r specs.LinuxSyscall) bool { return fits(r) && r.Action == specs.ActAllow }) {
		return 0, true
	}
	return unix.EPERM, false
}

// TestCodeCannotWatchSharedFiles: the pages of the root's files are in memory once for
// the host and all sandboxes, and what tells which of them are there tells what others
// read. TestEscapeBattery asks the kernel itself.
func TestCodeCannotWatchSharedFiles(t *testing.T) {
	const upper = 1 << 32
	for _, tt := range []struct {
		name    string
		args    []uint64
		errno   unix.Errno
		reaches bool
	}{
		{"preadv2", []uint64{3, 0, 1, 0, 0, 0}, 0, true},
		{"preadv2", []uint64{3, 0, 1, 0, 0, unix.RWF_HIPRI}, 0, true},
		{"preadv2", []uint64{3, 0, 1, 0, 0, unix.RWF_NOWAIT}, unix.EOPNOTSUPP, false},
		{"preadv2", []uint64{3, 0, 1, 0, 0, unix.RWF_NOWAIT | unix.RWF_HIPRI}, unix.EOPNOTSUPP, false},
		{"preadv2", []uint64{3, 0, 1, 0, 0, upper | unix.RWF_NOWAIT}, unix.EOPNOTSUPP, false},
		{"preadv2", []uint64{3, 0, 1, 0, 0, unix.RWF_DONTCACHE}, unix.EOPNOTSUPP, false},
		{"preadv2", []uint64{3, 0, 1, 0, 0, 0x100}, unix.EPERM, false},
		{"pwritev2", []uint64{3, 0, 1, 0, 0, unix.RWF_APPEND}, 0, true},
		{"pwritev2", []uint64{3, 0, 1, 0, 0, unix.RWF_DONTCACHE}, unix.EOPNOTSUPP, false},
		{"preadv", []uint64{3, 0, 1, 0}, 0, true},
		{"fadvise64", []uint64{3, 0, 0, unix.FADV_SEQUENTIAL}, 0, true},
		{"fadvise64", []uint64{3, 0, 0, unix.FADV_DONTNEED}, 0, false},
		{"fadvise64", []uint64{3, 0, 0, upper | unix.FADV_DONTNEED}, 0, false},
		{"fadvise64", []uint64{3, 0, 0, 99}, unix.EPERM, false},
		{"sync_file_range", nil, unix.ENOSYS, false},
		{"openat2", nil, unix.ENOSYS, false},
		{"mincore", nil, unix.EPERM, false},
		{"cachestat", nil, unix.EPERM, false},
		{"io_uring_enter", nil, unix.EPERM, false},
		{"io_submit", nil, unix.EPERM, false},
		{"inotify_add_watch", nil, unix.EPERM, false},
		{"process_madvise", nil, unix.EPERM, false},
		{"setsockopt", []uint64{3, unix.SOL_SOCKET, unix.SO_REUSEADDR}, 0, true},
		{"setsockopt", []uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY}, 0, true},
		{"setsockopt", []uint64{3, unix.IPPROTO_IP, unix.IP_HDRINCL}, unix.EPERM, false},
		{"setsockopt", []uint64{3, unix.IPPROTO_IP, upper | unix.IP_HDRINCL}, unix.EPERM, false},
		{"setsockopt", []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_ADDRFORM}, unix.EPERM, false},
		{"setsockopt", []uint64{3, unix.IPPROTO_TCP, unix.TCP_ULP}, unix.EPERM, false},
		{"setsockopt", []uint64{3, unix.IPPROTO_TCP, unix.TCP_CONGESTION}, unix.EPERM, false},
		{"setsockopt", []uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}, unix.EPERM, false},
		{"setsockopt", []uint64{3, 255, 1}, unix.EPERM, false},
		{"keyctl", nil, unix.EPERM, false},
		{"add_key", nil, unix.EPERM, false},
		{"request_key", nil, unix.EPERM, false},
	} {
		for name, un := range map[string]Uncounted{"none": {}, "all": {memory: true, cpu: true, freezer: true}} {
			p, err := SeccompProfile(un)
			if err != nil {
				t.Fatal(err)
			}
			if errno, reaches := answer(p, tt.name, tt.args...); errno != tt.errno || reaches != tt.reaches {
				t.Errorf("%s%x, uncounted %s: answers %v, reaches the kernel: %v; want %v, %v", tt.name, tt.args, name, errno, reaches, tt.errno, tt.reaches)
			}
		}
	}
}
