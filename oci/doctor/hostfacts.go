package doctor

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// hostFacts is the input of the checks. gather queries the kernel beforehand, so the checks
// are functions of these facts, and tests can try them on imaginary hosts.
type hostFacts struct {
	host.System
	host     host.Host
	hostErr  error // why host is unknown
	needs    Needs
	exe      string              // this program, symbolic links resolved
	started  string              // the executable that clients start
	user     string              // who runs it
	trial    host.NamespaceProbe // of a sandbox's namespaces
	seccomp  error               // why no filter can be loaded
	landlock int                 // its version, 0 if there is none
	folders  []folder
	readOnly []folder // that toolcell never writes to
	spare    folder   // a substitute for one on a full disk
	mounts   []Check
}

// gather reads the facts of this host.
func gather(h host.Host) *hostFacts {
	f := &hostFacts{
		System: host.ThisSystem(), host: h,
		exe: thisProgram(), started: program.This().Started(), user: host.UserName(os.Geteuid()),
		trial: host.ProbeNamespaces(h), seccomp: host.SeccompError(), landlock: host.LandlockVersion(),
	}
	f.spare = lookAt(ownFolder(f), h)
	return f
}

// thisProgram returns the kernel's name of this program, which has no symbolic links.
func thisProgram() string {
	exe, err := os.Executable()
	if err != nil {
		return "toolcell"
	}
	return exe
}

// program is how a shell starts this program.
func (f *hostFacts) program() string { return text.ShellWord(f.exe) }

// asRoot returns commands for root: with sudo, if we are not root. Comment lines stay as they
// are; in a pipe, only the last command needs root.
func (f *hostFacts) asRoot(commands ...string) string {
	if f.host.EUID == 0 && !f.InUserNamespace() {
		return strings.Join(commands, "\n")
	}
	sudo := "sudo "
	if f.Program("sudo") == "" && f.Program("doas") != "" {
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

// onHost returns commands that change kernel settings, which is impossible in a container or
// a user namespace.
func (f *hostFacts) onHost(commands ...string) string {
	switch {
	case f.Container() != "" && !f.host.Admin:
		return "# on the host, outside this container:\n" + withSudo("sudo ", commands)
	case f.InUserNamespace():
		return "# on the host, outside this user namespace:\n" + withSudo("sudo ", commands)
	}
	return f.asRoot(commands...)
}

// sysctlCure returns commands that set a kernel setting, now and permanently.
func sysctlCure(name, value string) []string {
	return []string{
		"sysctl -w " + name + "=" + value,
		"echo '" + name + "=" + value + "' | tee -a /etc/sysctl.d/60-toolcell.conf",
	}
}

// packageNames are the names of one package, by the program that installs it.
type packageNames map[string]string

// install returns the command that installs a package here, or "" if unknown. os-release(5)
// names the distribution and similar ones.
func (f *hostFacts) install(names packageNames) string {
	var like []string
	for line := range strings.Lines(f.Read("etc/os-release")) {
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

// lacksCaps names the capabilities that root needs and lacks, as in some containers: to map
// IDs that are not its own (user_namespaces(7)), to give them the FIFO on which the
// sandbox's start waits, and to open that.
func (f *hostFacts) lacksCaps() []string {
	if f.host.EUID != 0 || f.host.UIDs.Root == 0 {
		return nil
	}
	var has uint64
	for line := range strings.Lines(f.Read("proc/self/status")) {
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
