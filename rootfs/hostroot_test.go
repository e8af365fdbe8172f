package rootfs

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/rootfs/unpack/unpacktest"
)

// fakeHost makes a directory that looks like "/" of a host.
func fakeHost(t *testing.T, entries ...entry) string {
	t.Helper()
	return unpacktest.Root(t, entries...).Name()
}

func targets(p *hostPlan) (list []string) {
	for _, b := range p.Binds {
		list = append(list, b.Target)
	}
	return list
}

func TestHostPlanOfAMergedSystem(t *testing.T) {
	sys := fakeHost(t,
		program("usr/bin/python3.11"), symlink("usr/bin/python3", "python3.11"), dir("usr/lib"),
		symlink("bin", "usr/bin"), symlink("lib", "/usr/lib"),
		file("etc/ld.so.cache", ""), dir("etc/alternatives"), dir("etc/python3.11"), file("etc/shadow", "secret"),
		symlink("etc/localtime", "../usr/share/zoneinfo/UTC"), dir("home/ada"),
	)
	p, err := planHost(ctx, sys)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/etc/alternatives", "/etc/ld.so.cache", "/etc/python3.11", "/usr"}; !slices.Equal(targets(p), want) {
		t.Errorf("binds %q, want %q", targets(p), want)
	}
	if p.Python != "/usr/bin/python3" || p.Links["bin"] != "usr/bin" || p.Links["lib"] != "/usr/lib" || p.Links["etc/localtime"] == "" || len(p.Links) != 3 {
		t.Errorf("got %+v", p)
	}
}

func TestHostPlanOfAnUnmergedSystem(t *testing.T) {
	sys := fakeHost(t, program("usr/bin/python3"), program("bin/sh"), file("lib/libc.so", ""),
		dir("etc/pki/extracted"), symlink("etc/ssl/certs", "../pki/extracted"), file("etc/localtime", "TZ"))
	p, err := planHost(ctx, sys)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/bin", "/etc/localtime", "/etc/ssl/certs", "/lib", "/usr"}; !slices.Equal(targets(p), want) {
		t.Errorf("binds %q, want %q", targets(p), want)
	}
	for _, b := range p.Binds {
		if real, err := filepath.EvalSymlinks(b.Source); err != nil || real != b.Source {
			t.Errorf("the source %q has symlinks: %v", b.Source, err)
		}
	}
}

func TestHostPlanChangesWithTheHost(t *testing.T) {
	sys := fakeHost(t, program("usr/bin/python3"), dir("etc"))
	a, err := planHost(ctx, sys)
	if err != nil {
		t.Fatal(err)
	}
	b, err := planHost(ctx, sys)
	if err != nil || a.hash() != b.hash() {
		t.Errorf("the same host has two keys: %v", err)
	}
	if err := os.Mkdir(filepath.Join(sys, "etc/alternatives"), 0o755); err != nil {
		t.Fatal(err)
	}
	if b, err = planHost(ctx, sys); err != nil || a.hash() == b.hash() {
		t.Errorf("a changed host was not noticed: %v", err)
	}
}

func TestHostSkeletonHasAMountPointForEachBind(t *testing.T) {
	sys := fakeHost(t, program("usr/bin/python3"), symlink("bin", "usr/bin"),
		file("etc/ld.so.cache", "x"), dir("etc/ssl/certs"), dir("home/ada/py"))
	p, err := planHost(ctx, sys)
	if err != nil {
		t.Fatal(err)
	}
	p.addBind(sys, "home/ada/py")
	root := t.TempDir()
	if _, err := p.makeSkeleton(root); err != nil {
		t.Fatal(err)
	}
	for _, b := range p.Binds {
		info, err := os.Lstat(filepath.Join(root, b.Target))
		if err != nil || info.IsDir() != b.Dir || !b.Dir && info.Size() != 0 {
			t.Errorf("%s: %v, %v", b.Target, info, err)
		}
	}
	for d := filepath.Join(root, "home/ada/py"); d != root; d = filepath.Dir(d) {
		if info, _ := os.Stat(d); info.Mode().Perm() != 0o755 {
			t.Errorf("%s has mode %s", d, info.Mode())
		}
	}
	if passwd, err := os.ReadFile(filepath.Join(root, "etc/passwd")); err != nil || !strings.Contains(string(passwd), "nobody:x:65534:") {
		t.Errorf("passwd is %q, %v", passwd, err)
	}
	if target, err := os.Readlink(filepath.Join(root, "bin")); err != nil || target != "usr/bin" {
		t.Errorf("bin is %q, %v", target, err)
	}
}

func TestHostWithoutPythonSaysHowToGetIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for name, sys := range map[string]string{
		"none":    fakeHost(t, dir("usr/bin")),
		"too old": fakeHost(t, program("usr/bin/python3.6"), symlink("usr/bin/python3", "python3.6")),
		"broken":  fakeHost(t, symlink("usr/bin/python3", "nowhere")),
	} {
		if p, err := planHost(ctx, sys); err == nil || !strings.Contains(err.Error(), "apt install python3") {
			t.Errorf("%s: got %+v, %v", name, p, err)
		}
	}
}

func TestHostAsksThePythonInPATH(t *testing.T) {
	// A shim that answers as an interpreter in its own tree would.
	tree, err := os.MkdirTemp("/var/tmp", "rootfs-test-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(tree)
	shim := t.TempDir()
	exe := filepath.Join(tree, "py/bin/python3.13")
	if err := os.MkdirAll(filepath.Dir(exe), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(exe, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	answer := func(minor, prefix, exe string) string {
		return `#!/bin/sh
echo '{"executable":"` + exe + `","prefix":"` + prefix + `","base_prefix":"` + prefix + `","minor":` + minor + `}'`
	}
	home, _ := os.UserHomeDir()
	for name, c := range map[string]struct{ script, want string }{
		"right":        {answer("13", tree+"/py", exe), ""},
		"too old":      {answer("9", tree+"/py", exe), "Python 3.9"},
		"whole home":   {answer("13", home, exe), "must not see"},
		"whole disk":   {answer("13", "/", exe), "must not see"},
		"in /tmp":      {answer("13", "/tmp/py", exe), "of its own"},
		"no answer":    {"#!/bin/sh\nexit 1", "asking"},
		"no JSON":      {"#!/bin/sh\necho hello", "asking"},
		"no such file": {answer("13", tree, tree+"/no"), "no such file"},
	} {
		if err := os.WriteFile(filepath.Join(shim, "python3"), []byte(c.script), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", shim+":/usr/bin:/bin")
		p, err := planHost(ctx, fakeHost(t, dir("usr/bin")))
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := []string{"/usr", tree + "/py"}; p.Python != exe || !slices.Equal(targets(p), want) {
			t.Errorf("%s: got %+v, want binds %q", name, p, want)
		}
	}
}

func TestEnsureHost(t *testing.T) {
	if _, err := exec.LookPath("/usr/bin/python3"); err != nil {
		t.Skip("this host has no /usr/bin/python3: apt install python3")
	}
	s := openStore(t)
	root, err := s.Ensure(ctx, "host", nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Pull(ctx, "host", nil)
	if err != nil || again.Dir != root.Dir {
		t.Errorf("made twice: %+v, %v", again, err)
	}
	if root.Digest != "host" || root.Ref != "host" || root.Python != "/usr/bin/python3" {
		t.Errorf("got %+v", root)
	}
	if !slices.ContainsFunc(root.Binds, func(b Bind) bool { return b.Target == "/usr" }) {
		t.Errorf("no /usr in %+v", root.Binds)
	}
	for _, m := range mountPoints {
		if info, err := os.Lstat(filepath.Join(root.Dir, m)); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", m, err)
		}
	}
	if list, err := s.List(); err != nil || len(list) != 0 {
		t.Errorf("the host is listed as an image: %+v, %v", list, err)
	}
}
