package host

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A System is a view of a host's files and environment. Tests use it to describe other
// hosts.
type System struct {
	Files    fs.FS // the host's root directory
	Getenv   func(name string) string
	FileCaps func(path string) bool // the file has capabilities of its own
}

// ThisSystem is the host that this program runs on.
func ThisSystem() System {
	return System{Files: os.DirFS("/"), Getenv: os.Getenv, FileCaps: hasFileCaps}
}

// Read returns the text of a file of the host, "" if it cannot be read.
func (s System) Read(path string) string {
	b, err := fs.ReadFile(s.Files, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Sysctl reads a kernel setting by its name, -1 if there is none.
func (s System) Sysctl(name string) int {
	n, err := strconv.Atoi(s.Read("proc/sys/" + strings.ReplaceAll(name, ".", "/")))
	if err != nil {
		return -1
	}
	return n
}

// Program finds a program in the usual folders, which an MCP client's PATH may lack.
func (s System) Program(name string) string {
	for _, dir := range []string{"usr/bin/", "usr/sbin/", "bin/", "sbin/"} {
		if s.Exists(dir + name) {
			return "/" + dir + name
		}
	}
	return ""
}

// Systemd reports whether the host was started by it (sd_booted(3)).
func (s System) Systemd() bool { return s.Exists("run/systemd/system") }

// The container engines whose flags a cure names.
const (
	EngineDocker     = "docker"
	EnginePodman     = "podman"
	EngineKubernetes = "kubernetes"
	engineOther      = "container"
)

// Container names the engine of the container that we run in, or "". An MCP client may pass
// on no variables, so files count as well.
func (s System) Container() string {
	cgroup, kind := s.Read("proc/1/cgroup"), s.Read("run/systemd/container")
	switch {
	case s.Getenv("KUBERNETES_SERVICE_HOST") != "", s.Exists("var/run/secrets/kubernetes.io"),
		strings.Contains(cgroup, "/kubepods"), strings.HasPrefix(s.Read("etc/hosts"), "# Kubernetes-managed"):
		return EngineKubernetes
	case s.Exists("run/.containerenv"), strings.Contains(cgroup, "/libpod"), kind == EnginePodman:
		return EnginePodman
	case s.Exists(".dockerenv"), strings.Contains(cgroup, "/docker"), kind == EngineDocker:
		return EngineDocker
	case kind != "" && kind != "wsl", strings.Contains(cgroup, "/lxc"):
		return engineOther
	}
	return ""
}

// InUserNamespace reports whether we are in a user namespace other than the host's, which
// maps every ID to itself (user_namespaces(7)).
func (s System) InUserNamespace() bool {
	m := strings.Fields(s.Read("proc/self/uid_map"))
	return len(m) > 0 && !slices.Equal(m, []string{"0", "0", "4294967295"})
}

// An idTool is one of the programs that map subordinate ids.
type idTool struct {
	Path string // where PATH finds it, "" if it does not
	Able bool   // it has the rights it needs: setuid root or file capabilities
}

// IDTool finds newuidmap or newgidmap as libcontainer does, in PATH.
func (s System) IDTool(name string) idTool {
	for dir := range strings.SplitSeq(s.Getenv("PATH"), ":") {
		file := path.Join(dir, name)
		st, err := fs.Stat(s.Files, strings.TrimPrefix(file, "/"))
		if !path.IsAbs(dir) || err != nil || st.IsDir() || st.Mode()&0o111 == 0 {
			continue
		}
		return idTool{Path: file, Able: st.Mode()&fs.ModeSetuid != 0 || s.FileCaps(file)}
	}
	return idTool{}
}

// NoNewPrivs reports whether no_new_privs is set: a program that we start gains
// no rights from setuid bits or file capabilities.
func (s System) NoNewPrivs() bool {
	return strings.Contains(s.Read("proc/self/status"), "NoNewPrivs:\t1")
}

// mapsSubordinateIDs reports whether newuidmap and newgidmap exist and have the
// privileges they need. Without them an ordinary user cannot map subordinate ids.
func (s System) mapsSubordinateIDs() bool {
	return s.IDTool("newuidmap").Able && s.IDTool("newgidmap").Able && !s.NoNewPrivs()
}

// Exists reports whether the host has a file.
func (s System) Exists(path string) bool {
	_, err := fs.Stat(s.Files, path)
	return err == nil || errors.Is(err, fs.ErrPermission)
}

func hasFileCaps(path string) bool {
	n, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}
