package oci

import (
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// facts are what the checks of doctor know. Everything that asks the kernel is
// done beforehand, by gather, so that the checks themselves are functions of
// it and can be tried on hosts that exist only in a test.
type facts struct {
	host     host
	hostErr  error // why that is not known
	needs    Needs
	files    fs.FS // the host's root directory
	getenv   func(name string) string
	fileCaps func(path string) bool // the file has capabilities of its own
	exe      string                 // this program, symbolic links resolved
	user     string                 // who runs it
	trial    trial                  // of a sandbox's namespaces
	seccomp  error                  // why no filter can be loaded
	landlock int                    // its version, 0 if there is none
	folders  []folder
	mounts   []Check
}

// gather reads the facts of this host.
func gather(h host) *facts {
	f := &facts{
		host: h, files: os.DirFS("/"), getenv: os.Getenv, fileCaps: hasFileCaps,
		exe: h.exe, user: userName(os.Geteuid()),
		trial: tryNamespaces(h), seccomp: probeSeccomp(), landlock: probeLandlock(),
	}
	if exe, err := os.Executable(); err == nil {
		f.exe = exe // the kernel's name of it, so without symbolic links
	}
	return f
}

// read gives the text of a file of the host, nothing if it cannot be read.
func (f *facts) read(path string) string {
	b, err := fs.ReadFile(f.files, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number reads a file that holds a number, -1 if there is none.
func (f *facts) number(path string) int {
	n, err := strconv.Atoi(f.read(path))
	if err != nil {
		return -1
	}
	return n
}

// sysctl reads a kernel setting by its name, -1 if there is none.
func (f *facts) sysctl(name string) int {
	return f.number("proc/sys/" + strings.ReplaceAll(name, ".", "/"))
}

// program finds a program in the usual places; an MCP client's PATH may lack
// them.
func (f *facts) program(name string) string {
	for _, dir := range []string{"usr/bin/", "usr/sbin/", "bin/", "sbin/"} {
		if f.there(dir + name) {
			return "/" + dir + name
		}
	}
	return ""
}

// systemd reports whether the host was started by it (sd_booted(3)).
func (f *facts) systemd() bool { return f.there("run/systemd/system") }

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
func (f *facts) container() string {
	cgroup, kind := f.read("proc/1/cgroup"), f.read("run/systemd/container")
	switch {
	case f.getenv("KUBERNETES_SERVICE_HOST") != "", f.there("var/run/secrets/kubernetes.io"),
		strings.Contains(cgroup, "/kubepods"), strings.HasPrefix(f.read("etc/hosts"), "# Kubernetes-managed"):
		return engineKubernetes
	case f.there("run/.containerenv"), strings.Contains(cgroup, "/libpod"), kind == enginePodman:
		return enginePodman
	case f.there(".dockerenv"), strings.Contains(cgroup, "/docker"), kind == engineDocker:
		return engineDocker
	case kind != "" && kind != "wsl", strings.Contains(cgroup, "/lxc"):
		return engineOther
	}
	return ""
}

// inUserNamespace reports whether we are in one already. The host's own maps
// every id to itself (user_namespaces(7)).
func (f *facts) inUserNamespace() bool {
	m := strings.Fields(f.read("proc/self/uid_map"))
	return len(m) > 0 && !slices.Equal(m, []string{"0", "0", "4294967295"})
}

// asRoot writes commands that root has to type: with sudo, if we are not root.
// A line that is a comment stays as it is, and of a pipe it is the end that
// needs the rights.
func (f *facts) asRoot(commands ...string) string {
	if f.host.euid == 0 && !f.inUserNamespace() {
		return strings.Join(commands, "\n")
	}
	sudo := "sudo "
	if f.program("sudo") == "" && f.program("doas") != "" {
		sudo = "doas "
	}
	return withSudo(sudo, commands)
}

func withSudo(sudo string, commands []string) string {
	var out []string
	for _, c := range commands {
		switch {
		case strings.HasPrefix(c, "#"):
		case strings.HasPrefix(c, "echo "), strings.HasPrefix(c, "printf "):
			c = strings.Replace(c, "| ", "| "+sudo, 1)
		default:
			c = sudo + c
		}
		out = append(out, c)
	}
	return strings.Join(out, "\n")
}

// onHost writes commands that change the kernel's settings, which cannot be
// done from within a container or a user namespace.
func (f *facts) onHost(commands ...string) string {
	switch {
	case f.container() != "" && !f.host.admin:
		return "# on the host, outside this container:\n" + withSudo("sudo ", commands)
	case f.inUserNamespace():
		return "# on the host, outside this user namespace:\n" + withSudo("sudo ", commands)
	}
	return f.asRoot(commands...)
}

// sysctlCure sets a kernel setting, now and for the next start of the machine.
func sysctlCure(name, value string) []string {
	return []string{
		"sysctl -w " + name + "=" + value,
		"echo '" + name + "=" + value + "' | tee -a /etc/sysctl.d/60-toolcell.conf",
	}
}

// packageNames are those of one thing, by the program that installs it.
type packageNames map[string]string

// install writes the command that installs a package here, "" where it is not
// known: os-release(5) tells the distribution and those it is like.
func (f *facts) install(names packageNames) string {
	var like []string
	for line := range strings.Lines(f.read("etc/os-release")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch key {
		case "ID":
			like = append([]string{value}, like...)
		case "ID_LIKE":
			like = append(like, strings.Fields(value)...)
		}
	}
	for _, id := range like {
		if command := packagers[id]; command != nil && names[command[0]] != "" {
			return f.asRoot(strings.Join(append(slices.Clone(command), names[command[0]]), " "))
		}
	}
	return ""
}

// packagers are the commands that install a package, by distribution.
var packagers = map[string][]string{
	"debian": {"apt-get", "install"}, "ubuntu": {"apt-get", "install"},
	"fedora": {"dnf", "install"}, "rhel": {"dnf", "install"}, "centos": {"dnf", "install"},
	"alpine": {"apk", "add"}, "arch": {"pacman", "-S"}, "suse": {"zypper", "install"}, "opensuse": {"zypper", "install"},
}

// idTool looks for one of the programs that map subordinate ids.
type idTool struct {
	path   string // where PATH finds it, "" if it does not
	beside string // where it is though PATH does not find it
	able   bool   // it may do what it is for: setuid root, or with capabilities
}

func (f *facts) idTool(name string) idTool {
	for _, dir := range strings.Split(f.getenv("PATH"), ":") {
		path := strings.Trim(dir, "/") + "/" + name
		st, err := fs.Stat(f.files, path)
		if !strings.HasPrefix(dir, "/") || err != nil || st.IsDir() || st.Mode()&0o111 == 0 {
			continue
		}
		return idTool{path: "/" + path, able: st.Mode()&fs.ModeSetuid != 0 || f.fileCaps("/"+path)}
	}
	return idTool{beside: f.program(name)}
}

// noNewPrivs reports whether no program that we start can have more rights
// than we have, however it is marked.
func (f *facts) noNewPrivs() bool {
	return strings.Contains(f.read("proc/self/status"), "NoNewPrivs:\t1")
}

// lacksCaps names the capabilities that root needs and does not have, as in
// some containers: to map ids that are not its own (user_namespaces(7)), to
// give them the file that the sandbox's start waits at, and to open that.
func (f *facts) lacksCaps() []string {
	if f.host.euid != 0 || f.host.uids.Root == 0 {
		return nil
	}
	var has uint64
	for line := range strings.Lines(f.read("proc/self/status")) {
		if set, ok := strings.CutPrefix(line, "CapEff:"); ok {
			has, _ = strconv.ParseUint(strings.TrimSpace(set), 16, 64)
		}
	}
	var lacks []string
	for _, c := range []struct {
		name string
		bit  int
	}{{"SETUID", unix.CAP_SETUID}, {"SETGID", unix.CAP_SETGID}, {"CHOWN", unix.CAP_CHOWN}, {"DAC_OVERRIDE", unix.CAP_DAC_OVERRIDE}} {
		if has&(1<<c.bit) == 0 {
			lacks = append(lacks, c.name)
		}
	}
	return lacks
}

// mapsSubordinateIDs reports whether both tools are there and can work.
func (f *facts) mapsSubordinateIDs() bool {
	return f.idTool("newuidmap").able && f.idTool("newgidmap").able && !f.noNewPrivs()
}

func hasFileCaps(path string) bool {
	n, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil && n > 0
}

// probeSeccomp reports whether filters can be loaded. The kernel reads the
// filter before anything else, so that without one it fails with EFAULT; it
// has no effect.
func probeSeccomp() error {
	const setModeFilter = 1
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, 0, 0)
	if errno == unix.EFAULT {
		return nil
	}
	return errno
}

// probeLandlock asks for the version of Landlock, 0 if the kernel has or uses
// none (landlock_create_ruleset(2), LANDLOCK_CREATE_RULESET_VERSION).
func probeLandlock() int {
	const versionFlag = 1
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, versionFlag)
	if errno != 0 {
		return 0
	}
	return int(version)
}
