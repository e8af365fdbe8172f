package host

import (
	"io/fs"
	"testing"
	"testing/fstest"
)

// systemOf is a host with these files and variables.
func systemOf(files fstest.MapFS, env map[string]string) System {
	return System{Files: files, Getenv: func(name string) string { return env[name] }, FileCaps: func(string) bool { return false }}
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func TestContainerIsKnownByItsMarks(t *testing.T) {
	for name, tt := range map[string]struct {
		files fstest.MapFS
		env   map[string]string
		want  string
	}{
		"no container":         {fstest.MapFS{"proc/1/cgroup": text("0::/init.scope\n")}, nil, ""},
		"docker's file":        {fstest.MapFS{".dockerenv": text("")}, nil, EngineDocker},
		"docker's cgroup":      {fstest.MapFS{"proc/1/cgroup": text("12:pids:/docker/0123\n")}, nil, EngineDocker},
		"podman's file":        {fstest.MapFS{"run/.containerenv": text("")}, nil, EnginePodman},
		"podman by systemd":    {fstest.MapFS{"run/systemd/container": text("podman\n")}, nil, EnginePodman},
		"kubernetes, variable": {nil, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, EngineKubernetes},
		"kubernetes, no variables passed on": {
			fstest.MapFS{"etc/hosts": text("# Kubernetes-managed hosts file.\n"), ".dockerenv": text("")}, nil, EngineKubernetes,
		},
		"kubernetes, its secrets": {fstest.MapFS{"var/run/secrets/kubernetes.io/x": text("")}, nil, EngineKubernetes},
		"kubernetes' cgroup":      {fstest.MapFS{"proc/1/cgroup": text("0::/kubepods/pod1\n")}, nil, EngineKubernetes},
		"podman's cgroup":         {fstest.MapFS{"proc/1/cgroup": text("0::/machine.slice/libpod-0123.scope/libpod\n")}, nil, EnginePodman},
		"docker by systemd":       {fstest.MapFS{"run/systemd/container": text("docker\n")}, nil, EngineDocker},
		"lxc's cgroup":            {fstest.MapFS{"proc/1/cgroup": text("4:pids:/lxc/web\n")}, nil, engineOther},
		"lxc":                     {fstest.MapFS{"run/systemd/container": text("lxc\n")}, nil, engineOther},
		"WSL 2":                   {fstest.MapFS{"run/systemd/container": text("wsl\n")}, nil, ""},
	} {
		if got := systemOf(tt.files, tt.env).Container(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestInUserNamespace(t *testing.T) {
	for uidMap, want := range map[string]bool{
		"         0          0 4294967295\n": false,
		"         0       1000          1\n": true,
		"0 100000 65536\n65536 1000 1\n":     true,
		"":                                   false,
	} {
		if got := systemOf(fstest.MapFS{"proc/self/uid_map": text(uidMap)}, nil).InUserNamespace(); got != want {
			t.Errorf("%q: %t", uidMap, got)
		}
	}
}

func TestIDToolIsFoundAsTheShellWould(t *testing.T) {
	setuid := &fstest.MapFile{Mode: 0o755 | fs.ModeSetuid}
	plain := &fstest.MapFile{Mode: 0o755}
	data := &fstest.MapFile{Mode: 0o644}
	for name, tt := range map[string]struct {
		files fstest.MapFS
		path  string
		want  idTool
	}{
		"setuid root":           {fstest.MapFS{"usr/bin/newuidmap": setuid}, "/usr/bin", idTool{Path: "/usr/bin/newuidmap", Able: true}},
		"no rights":             {fstest.MapFS{"usr/bin/newuidmap": plain}, "/usr/bin", idTool{Path: "/usr/bin/newuidmap"}},
		"the first one counts":  {fstest.MapFS{"opt/newuidmap": plain, "usr/bin/newuidmap": setuid}, "/opt:/usr/bin", idTool{Path: "/opt/newuidmap"}},
		"no program":            {fstest.MapFS{"opt/newuidmap": data, "usr/bin/newuidmap": setuid}, "/opt:/usr/bin", idTool{Path: "/usr/bin/newuidmap", Able: true}},
		"a folder of its name":  {fstest.MapFS{"opt/newuidmap/x": plain, "usr/bin/newuidmap": setuid}, "/opt:/usr/bin", idTool{Path: "/usr/bin/newuidmap", Able: true}},
		"in another form":       {fstest.MapFS{"usr/bin/newuidmap": setuid}, "/usr/local/..//bin/.", idTool{Path: "/usr/bin/newuidmap", Able: true}},
		"in the root":           {fstest.MapFS{"newuidmap": setuid}, "/", idTool{Path: "/newuidmap", Able: true}},
		"beside PATH":           {fstest.MapFS{"usr/bin/newuidmap": setuid}, "/opt", idTool{}},
		"relative, not in PATH": {fstest.MapFS{"usr/bin/newuidmap": setuid}, "usr/bin", idTool{}},
		"nowhere":               {nil, "/usr/bin", idTool{}},
	} {
		if got := systemOf(tt.files, map[string]string{"PATH": tt.path}).IDTool("newuidmap"); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestNoNewPrivsTakesTheToolsTheirRights(t *testing.T) {
	setuid := &fstest.MapFile{Mode: 0o755 | fs.ModeSetuid}
	files := fstest.MapFS{"usr/bin/newuidmap": setuid, "usr/bin/newgidmap": setuid, "proc/self/status": text("NoNewPrivs:\t0\n")}
	s := systemOf(files, map[string]string{"PATH": "/usr/bin"})
	if !s.mapsSubordinateIDs() {
		t.Error("two tools that are setuid root are not enough")
	}
	files["proc/self/status"] = text("NoNewPrivs:\t1\n")
	if s.mapsSubordinateIDs() {
		t.Error("with no_new_privs they have no rights")
	}
}

func TestSysctl(t *testing.T) {
	s := systemOf(fstest.MapFS{"proc/sys/user/max_user_namespaces": text("15000\n"), "proc/sys/kernel/odd": text("on\n")}, nil)
	for name, want := range map[string]int{"user.max_user_namespaces": 15000, "kernel.odd": -1, "kernel.unprivileged_userns_clone": -1} {
		if got := s.Sysctl(name); got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
}

func TestCgroupPathIsInTheDriversForm(t *testing.T) {
	for driver, want := range map[string]string{CgroupFS: "toolcell/x", CgroupSystemd: "user.slice:toolcell:x", CgroupNone: ""} {
		if got := (Cgroup{Driver: driver}).Path("x"); got != want {
			t.Errorf("%q: %q, want %q", driver, got, want)
		}
	}
}
