package oci

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A system is a view of a host's files and environment. Tests make systems of
// hosts that they do not run on.
type system struct {
	files    fs.FS // the host's root directory
	getenv   func(name string) string
	fileCaps func(path string) bool // the file has capabilities of its own
}

// thisSystem is the host that this program runs on.
func thisSystem() system {
	return system{files: os.DirFS("/"), getenv: os.Getenv, fileCaps: hasFileCaps}
}

// read gives the text of a file of the host, nothing if it cannot be read.
func (s system) read(path string) string {
	b, err := fs.ReadFile(s.files, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number reads a file that holds a number, -1 if there is none.
func (s system) number(path string) int {
	n, err := strconv.Atoi(s.read(path))
	if err != nil {
		return -1
	}
	return n
}

// sysctl reads a kernel setting by its name, -1 if there is none.
func (s system) sysctl(name string) int {
	return s.number("proc/sys/" + strings.ReplaceAll(name, ".", "/"))
}

// program finds a program in the usual places; an MCP client's PATH may lack
// them.
func (s system) program(name string) string {
	for _, dir := range []string{"usr/bin/", "usr/sbin/", "bin/", "sbin/"} {
		if s.there(dir + name) {
			return "/" + dir + name
		}
	}
	return ""
}

// systemd reports whether the host was started by it (sd_booted(3)).
func (s system) systemd() bool { return s.there("run/systemd/system") }

// The container engines whose flags a cure names.
const (
	engineDocker     = "docker"
	enginePodman     = "podman"
	engineKubernetes = "kubernetes"
	engineOther      = "container"
)

// container tells in what engine's container this is, by the marks that it
// leaves; "" if there are none. An MCP client may pass no variables on, so
// files count as well.
func (s system) container() string {
	cgroup, kind := s.read("proc/1/cgroup"), s.read("run/systemd/container")
	switch {
	case s.getenv("KUBERNETES_SERVICE_HOST") != "", s.there("var/run/secrets/kubernetes.io"),
		strings.Contains(cgroup, "/kubepods"), strings.HasPrefix(s.read("etc/hosts"), "# Kubernetes-managed"):
		return engineKubernetes
	case s.there("run/.containerenv"), strings.Contains(cgroup, "/libpod"), kind == enginePodman:
		return enginePodman
	case s.there(".dockerenv"), strings.Contains(cgroup, "/docker"), kind == engineDocker:
		return engineDocker
	case kind != "" && kind != "wsl", strings.Contains(cgroup, "/lxc"):
		return engineOther
	}
	return ""
}

// inUserNamespace reports whether we are in one already. The host's own maps
// every id to itself (user_namespaces(7)).
func (s system) inUserNamespace() bool {
	m := strings.Fields(s.read("proc/self/uid_map"))
	return len(m) > 0 && !slices.Equal(m, []string{"0", "0", "4294967295"})
}

// idTool looks for one of the programs that map subordinate ids.
type idTool struct {
	path   string // where PATH finds it, "" if it does not
	beside string // where it is though PATH does not find it
	able   bool   // it may do what it is for: setuid root, or with capabilities
}

func (s system) idTool(name string) idTool {
	for _, dir := range strings.Split(s.getenv("PATH"), ":") {
		path := strings.Trim(dir, "/") + "/" + name
		st, err := fs.Stat(s.files, path)
		if !strings.HasPrefix(dir, "/") || err != nil || st.IsDir() || st.Mode()&0o111 == 0 {
			continue
		}
		return idTool{path: "/" + path, able: st.Mode()&fs.ModeSetuid != 0 || s.fileCaps("/"+path)}
	}
	return idTool{beside: s.program(name)}
}

// noNewPrivs reports whether no program that we start can have more rights
// than we have, however it is marked.
func (s system) noNewPrivs() bool {
	return strings.Contains(s.read("proc/self/status"), "NoNewPrivs:\t1")
}

// mapsSubordinateIDs reports whether both tools are there and can work.
func (s system) mapsSubordinateIDs() bool {
	return s.idTool("newuidmap").able && s.idTool("newgidmap").able && !s.noNewPrivs()
}

// there reports whether the host has a file.
func (s system) there(path string) bool {
	_, err := fs.Stat(s.files, path)
	return err == nil || errors.Is(err, fs.ErrPermission)
}

func hasFileCaps(path string) bool {
	n, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}
