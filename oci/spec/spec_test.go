package spec

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write the golden files")

// TestNewSpecGolden shows what a sandbox is on each kind of host.
func TestNewSpecGolden(t *testing.T) {
	seccomp := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno} // the real one is long and differs by kernel
	usual := Process{
		Root:     Root{Dir: "/cache/root"},
		Binds:    []Bind{{Source: "/cache/runner.py", Target: "/run/toolcell/runner.py"}},
		Args:     []string{"/usr/bin/python3", "/run/toolcell/runner.py"},
		Env:      []string{"HOME=/workspace"},
		Limits:   Limits{Memory: 512 << 20, PIDs: 128, CPUs: 1.5},
		Top:      []string{"etc", "usr"},
		Resolver: true,
		Proc:     "/state/proc",
	}
	onHost := usual
	onHost.Top = []string{"etc"}
	onHost.Root.Binds = []Bind{{Source: "/usr", Target: "/usr"}}
	everything := host.Cgroup{Driver: host.CgroupFS, Memory: true, PIDs: true, CPU: true, Swap: true}
	v2 := everything
	v2.Driver, v2.V2 = host.CgroupSystemd, true
	root := host.IDMap{Root: host.BaseID, User: host.BaseID + 65534}
	user := host.IDMap{Root: 1000, User: 100000}
	alone := host.IDMap{Root: 1000, User: -1}
	for name, tt := range map[string]struct {
		process Process
		host    Host
	}{
		"root-cgroup1":    {usual, Host{InsideUID: 65534, InsideGID: 65534, UIDs: root, GIDs: root, Cgroup: everything, Seccomp: seccomp}},
		"user-systemd":    {usual, Host{InsideUID: 65534, InsideGID: 65534, EUID: 1000, UIDs: user, GIDs: user, Cgroup: v2, Seccomp: seccomp}},
		"user-no-cgroup":  {usual, Host{InsideUID: 65534, InsideGID: 65534, EUID: 1000, UIDs: user, GIDs: user, HardLimits: map[int]uint64{unix.RLIMIT_NOFILE: 1024, unix.RLIMIT_NPROC: 100}, Seccomp: seccomp}},
		"user-one-id":     {usual, Host{InsideUID: 65534, InsideGID: 65534, EUID: 1000, UIDs: alone, GIDs: alone, Exe: "/usr/local/bin/toolcell", Seccomp: seccomp}},
		"user-no-proc":    {usual, Host{InsideUID: 65534, InsideGID: 65534, EUID: 1000, UIDs: user, GIDs: user, Cgroup: v2, Exe: "/usr/local/bin/toolcell", NoProc: true, Seccomp: seccomp}},
		"root-host-image": {onHost, Host{InsideUID: 65534, InsideGID: 65534, UIDs: root, GIDs: root, Cgroup: everything, Seccomp: seccomp}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(New(tt.process, tt.host, "0123456789abcdef"), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != string(got)+"\n" {
				t.Errorf("the specification differs from %s; after a look at the difference: go test ./oci/spec -update\n%s", file, got)
			}
		})
	}
}

func TestNewSpecDropsAllCapabilities(t *testing.T) {
	two := host.IDMap{Root: 1000, User: 100000}
	got := New(Process{}, Host{EUID: 1000, UIDs: two, GIDs: two}, "x").Process.Capabilities
	if got == nil || len(got.Bounding)+len(got.Effective)+len(got.Permitted)+len(got.Inheritable)+len(got.Ambient) > 0 {
		t.Errorf("capabilities = %+v, want empty and not nil", got)
	}
}

// TestImageCannotReachTheStages: variables decide what pid 1 does, and the stages
// before it.
func TestImageCannotReachTheStages(t *testing.T) {
	alone := host.IDMap{Root: 1000, User: -1}
	for name, h := range map[string]Host{"two ids": {}, "one id": {Host: host.Host{EUID: 1000, UIDs: alone, GIDs: alone}}} {
		image := []string{
			"_TOOLCELL_PID1=3:1:1:64", "_TOOLCELL_READ=/", "_TOOLCELL_WRITE=/", "_TOOLCELL_NEST=0:0:0", "_TOOLCELL_ADOPT=3:4:5",
			"_TOOLCELL_PROBE=1", "_TOOLCELL_ENV__TOOLCELL_READ=/", "_LIBCONTAINER_INITPIPE=3", "_LIBCONTAINER_LOGPIPE=3",
			"GODEBUG=gctrace=1", "GLIBC_TUNABLES=x", "LD_PRELOAD=/x.so", "HOME=/", "A=b",
		}
		ours := New(Process{}, h, "x").Process.Env
		got := New(Process{Env: image}, h, "x").Process.Env
		want := append(slices.Clone(ours), "_TOOLCELL_ENV_GODEBUG=gctrace=1", "_TOOLCELL_ENV_GLIBC_TUNABLES=x", "_TOOLCELL_ENV_LD_PRELOAD=/x.so", "_TOOLCELL_ENV_HOME=/", "_TOOLCELL_ENV_A=b")
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestReadable: what lies below another place needs no rule of its own.
func TestReadable(t *testing.T) {
	p := Process{Top: []string{"etc", "usr"}, Root: Root{Binds: []Bind{{Target: "/etc/ssl"}, {Target: "/opt/python"}, {Target: "/usr"}}}}
	mounts := []ShownMount{{Target: "/mnt/data"}, {Target: "/workspace/data"}, {Target: "/etc-x"}, {Target: "/tmp/program", Exec: true}}
	got := Readable(p, Host{Mounts: mounts})
	want := []string{"/etc", "/etc-x", "/mnt/data", "/opt/python", "/run/toolcell", "/tmp/program", "/usr"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Readable(Process{Root: Root{Binds: []Bind{{Target: "/srv/a:b"}}}}, Host{}); !slices.Equal(got, []string{"/"}) {
		t.Errorf("with a name that has a colon: got %q", got)
	}
	if got := Readable(Process{Top: []string{"."}}, Host{Mounts: mounts}); !slices.Equal(got, []string{"/"}) {
		t.Errorf("got %q, want all of the root", got)
	}
}

// TestSeccompProfile pins what the profile says of the calls that matter most.
func TestSeccompProfile(t *testing.T) {
	p, err := SeccompProfile(Uncounted{memory: true, cpu: true})
	if err != nil {
		t.Fatal(err)
	}
	if p.DefaultAction != specs.ActErrno {
		t.Errorf("default action = %s, want an error", p.DefaultAction)
	}
	for _, rule := range p.Syscalls {
		for _, name := range rule.Names {
			switch name {
			case "mount", "umount2", "unshare", "setns", "bpf", "keyctl", "add_key", "userfaultfd",
				"perf_event_open", "init_module", "kexec_load", "reboot", "swapon", "pivot_root", "open_by_handle_at",
				"memfd_create", "shmget", "semget", "mq_open", "sched_setaffinity", "ptrace", "process_vm_readv", "process_vm_writev", "io_uring_setup", "fsopen", "open_tree", "mount_setattr",
				"seccomp", "io_setup", "io_submit", "mincore", "cachestat", "syncfs":
				if rule.Action == specs.ActAllow {
					t.Errorf("%s is allowed", name)
				}
			case "socket", "socketpair", "personality", "clone", "prctl", "ioctl", "setsockopt", "fcntl", "sendmsg", "prlimit64":
				if rule.Action == specs.ActAllow && len(rule.Args) == 0 {
					t.Errorf("%s is allowed whatever its arguments", name)
				}
			case "sync":
				if rule.Action != specs.ActErrno || rule.ErrnoRet == nil || *rule.ErrnoRet != 0 {
					t.Errorf("sync: %+v, want one that does nothing", rule)
				}
			case "clone3":
				if rule.Action != specs.ActErrno || rule.ErrnoRet == nil || *rule.ErrnoRet != 38 {
					t.Errorf("clone3: %+v, want ENOSYS, on which glibc falls back to clone", rule)
				}
			}
		}
	}
}

func TestMappingsNeverGiveMoreThanTwoIDs(t *testing.T) {
	got := mappings(host.IDMap{Root: 1000, User: 100000}, 65534)
	want := []specs.LinuxIDMapping{{ContainerID: 0, HostID: 1000, Size: 1}, {ContainerID: 65534, HostID: 100000, Size: 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := mappings(host.IDMap{Root: 1000, User: -1}, 65534); len(got) != 1 {
		t.Errorf("with one id: got %+v", got)
	}
}
