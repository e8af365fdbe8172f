package spec

import (
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/toolcell/toolcell/oci/host"
)

// mountOn returns what a specification mounts on a place; its Type is empty if nothing is.
func mountOn(s *specs.Spec, place string) specs.Mount {
	if i := slices.IndexFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == place }); i >= 0 {
		return s.Mounts[i]
	}
	return specs.Mount{}
}

// TestTreesOfTheRootAreReadOnly with what the host has mounted on them, if the kernel can.
func TestTreesOfTheRootAreReadOnly(t *testing.T) {
	p := Process{Root: Root{Binds: []Bind{{"/usr", "/usr"}}}, Binds: []Bind{{"/cache/runner.py", "/run/toolcell/runner.py"}}}
	plain := []string{"bind", "ro", "nosuid", "nodev"}
	for recursive, want := range map[bool][]string{
		false: plain,
		true:  {"rbind", "ro", "nosuid", "nodev", "rro", "rnosuid", "rnodev"},
	} {
		s := New(p, Host{Recursive: recursive}, "x")
		if got := mountOn(s, "/usr").Options; !slices.Equal(got, want) {
			t.Errorf("recursive %t: options %v, want %v", recursive, got, want)
		}
		if got := mountOn(s, "/run/toolcell/runner.py").Options; !slices.Equal(got, plain) {
			t.Errorf("recursive %t: a file of our own has options %v, want %v", recursive, got, plain)
		}
	}
}

// TestFoldersAreMountedAfterTheRoot, or the root's trees would hide them.
func TestFoldersAreMountedAfterTheRoot(t *testing.T) {
	mounts := []ShownMount{{Mount: Mount{"/home/u/data", "/workspace/data", true}}, {Mount: Mount{"/srv", "/mnt/srv/", false}}, {Mount: Mount{"/x", "/mnt/x", true}}}
	s := New(Process{Root: Root{Binds: []Bind{{"/opt", "/mnt"}}}}, Host{Mounts: mounts}, "x")
	if got := mountOn(s, "/workspace/data"); got.Source != "/home/u/data" || got.Type != "bind" || slices.Contains(got.Options, "ro") {
		t.Errorf("the writable folder is %+v", got)
	}
	if got := mountOn(s, "/mnt/srv"); got.Source != "/srv" || !slices.Contains(got.Options, "ro") {
		t.Errorf("the other is %+v", got)
	}
	at := func(place string) int {
		return slices.IndexFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == place })
	}
	if at("/mnt/srv") < at("/mnt") || at("/workspace/data") < at("/workspace") {
		t.Errorf("out of order: %+v", s.Mounts)
	}
	if env := s.Process.Env; env[0] != "_TOOLCELL_WRITE=/mnt/x" {
		t.Errorf("code may write by %q, want /mnt/x, as /workspace has a rule of its own", env)
	}
	for _, kv := range New(Process{}, Host{}, "x").Process.Env {
		if kv == "_TOOLCELL_WRITE=" {
			t.Errorf("without a writable folder there is %q", kv)
		}
	}
}

func TestOwnTopIsNotTheImages(t *testing.T) {
	for name, want := range map[string]bool{"dev": true, "proc": true, "tmp": true, "workspace": true, "sys": true, "etc": false, "run": false, "": false} {
		if got := IsOwnTop(name); got != want {
			t.Errorf("IsOwnTop(%q) = %t", name, got)
		}
	}
}

// TestTemplateCoversNothingOfProc: the kernel would refuse its forks a /proc. They mount the
// substitutes, and cover the rest.
func TestTemplateCoversNothingOfProc(t *testing.T) {
	code, zygote := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno}, &specs.LinuxSeccomp{DefaultAction: specs.ActKill}
	h := Host{Mounts: []ShownMount{{Mount: Mount{"/srv", "/mnt", false}, Below: []string{"/mnt/usb"}}}, Seccomp: code, TemplateSeccomp: zygote}
	h.UIDs, h.GIDs = host.IDMap{Root: 1, User: 2}, host.IDMap{Root: 1, User: 2}
	devices := []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

	s := New(Process{Template: true, Proc: "/state/proc"}, h, "x")
	if s.Linux.Seccomp != zygote {
		t.Errorf("a template has the filter %+v", s.Linux.Seccomp)
	}
	if !slices.Equal(s.Linux.MaskedPaths, []string{"/mnt/usb"}) || !slices.Equal(s.Linux.ReadonlyPaths, devices) {
		t.Errorf("a template: %v are masked, %v read-only", s.Linux.MaskedPaths, s.Linux.ReadonlyPaths)
	}
	if got := mountOn(s, "/run/toolcell/proc"); got.Source != "/state/proc" || mountOn(s, "/proc/stat").Type != "" {
		t.Errorf("a template has the substitutes %+v, and on /proc/stat %+v", got, mountOn(s, "/proc/stat"))
	}

	s = New(Process{Proc: "/state/proc"}, h, "x")
	if s.Linux.Seccomp != code {
		t.Errorf("a sandbox has the filter %+v", s.Linux.Seccomp)
	}
	for _, path := range []string{"/mnt/usb", "/proc/keys", "/proc/kcore"} {
		if !slices.Contains(s.Linux.MaskedPaths, path) {
			t.Errorf("a sandbox sees %s", path)
		}
	}
	if want := append([]string{"/proc/sys", "/proc/sysrq-trigger"}, devices...); !slices.Equal(s.Linux.ReadonlyPaths, want) {
		t.Errorf("a sandbox: %v are read-only, want %v", s.Linux.ReadonlyPaths, want)
	}
	if got := mountOn(s, "/proc/stat"); got.Source != "/state/proc/stat" || mountOn(s, "/run/toolcell/proc").Type != "" {
		t.Errorf("a sandbox has on /proc/stat %+v, and %+v", got, mountOn(s, "/run/toolcell/proc"))
	}

	h.UIDs.User = -1 // the stage loads the filter
	s = New(Process{Template: true}, h, "x")
	if un, err := ParseUncounted(s.Process.Args[2]); err != nil || !un.Template || s.Linux.Seccomp != nil {
		t.Errorf("the stage is started as %q, %v, with the filter %+v", s.Process.Args, err, s.Linux.Seccomp)
	}
}

func TestNoSubstitutesAreNotMounted(t *testing.T) {
	for name, s := range map[string]*specs.Spec{
		"no substitutes": New(Process{}, Host{}, "x"),
		"no /proc":       New(Process{Proc: "/state/proc"}, Host{NoProc: true}, "x"),
	} {
		for _, file := range append([]string{"/run/toolcell/proc"}, CoveredFiles...) {
			if got := mountOn(s, file); got.Type != "" {
				t.Errorf("%s: there is %+v", name, got)
			}
		}
	}
}
