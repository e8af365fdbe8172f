package spec

import (
	"maps"
	"testing"

	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

func TestRlimitsAreTheLowerOfBoth(t *testing.T) {
	usual := map[string]uint64{
		"RLIMIT_CORE": 1, "RLIMIT_NOFILE": 4096, "RLIMIT_MEMLOCK": 8 << 20, "RLIMIT_MSGQUEUE": 0, "RLIMIT_NICE": 0,
		"RLIMIT_RTPRIO": 0, "RLIMIT_SIGPENDING": 1024,
	}
	lower := func(name string, n uint64) map[string]uint64 {
		all := maps.Clone(usual)
		all[name] = n
		return all
	}
	for name, tt := range map[string]struct {
		limits Limits
		host   host.Host
		want   map[string]uint64
	}{
		"usual":                 {Limits{}, host.Host{}, usual},
		"a cgroup":              {Limits{PIDs: 128}, host.Host{Cgroup: host.Cgroup{PIDs: true}}, usual},
		"no cgroup":             {Limits{PIDs: 128}, host.Host{}, lower("RLIMIT_NPROC", 128)},
		"fewer files by far":    {Limits{}, host.Host{HardLimits: map[int]uint64{unix.RLIMIT_NOFILE: 256}}, lower("RLIMIT_NOFILE", 256)},
		"more files than usual": {Limits{}, host.Host{HardLimits: map[int]uint64{unix.RLIMIT_NOFILE: 1 << 20}}, usual},
	} {
		got := map[string]uint64{}
		for _, l := range Rlimits(tt.limits, Host{Host: tt.host}) {
			if l.Soft != l.Hard {
				t.Errorf("%s: %+v can be raised", name, l)
			}
			got[l.Type] = l.Hard
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestLimitsInWords(t *testing.T) {
	words := Limits{Memory: 512 << 20, PIDs: 128}.Words()
	for name, want := range map[string]string{
		"memory": "512 MiB of memory", "pids": "128 processes and threads", "files": "4096 open files in one process",
		"/tmp": "/tmp holds 64 MiB in 32768 files, and is full",
	} {
		if words[name] != want {
			t.Errorf("%s is %q, want %q", name, words[name], want)
		}
	}
	for _, name := range []string{"memory", "pids"} {
		if text, ok := (Limits{}).Words()[name]; ok {
			t.Errorf("without a limit %s is %q", name, text)
		}
	}
}

func TestSocketBuffersAreNoMoreThanMemory(t *testing.T) {
	for memory, want := range map[int64]int64{0: 64 << 20, 16 << 20: 16 << 20, 512 << 20: 64 << 20} {
		if got := (Limits{Memory: memory}).SocketBuffers(); got != want {
			t.Errorf("with %d bytes of memory: %d, want %d", memory, got, want)
		}
	}
}

// TestTCPBuffersAreBoundWhereNoneCounts: setting them takes a /proc of the sandbox's own.
func TestTCPBuffersAreBoundWhereNoneCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		host  host.Host
		bound bool
	}{
		"cgroup v2":          {host.Host{Cgroup: host.Cgroup{Memory: true, V2: true}}, false},
		"cgroup v1":          {host.Host{Cgroup: host.Cgroup{Memory: true}}, true},
		"v2 without memory":  {host.Host{Cgroup: host.Cgroup{V2: true}}, true},
		"no cgroup":          {host.Host{}, true},
		"no cgroup, no proc": {host.Host{NoProc: true}, false},
	} {
		got := New(Process{}, Host{Host: tt.host}, "x").Linux.Sysctl
		if bound := got["net.ipv4.tcp_rmem"] != "" && got["net.ipv4.tcp_wmem"] != ""; bound != tt.bound {
			t.Errorf("%s: %v", name, got)
		}
		if _, low := got["net.ipv4.ip_unprivileged_port_start"]; low == tt.host.NoProc {
			t.Errorf("%s: %v", name, got)
		}
	}
}
