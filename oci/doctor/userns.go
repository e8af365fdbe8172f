package doctor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// namespaceKinds are the namespaces of a sandbox, by the kernel's names.
var namespaceKinds = []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"}

// userNamespaceCheck finds what prevents a child process from being a sandbox. The trial
// shows that something does, and settings show what.
func userNamespaceCheck(f *hostFacts) Check {
	t := f.trial
	switch {
	case len(f.lacksCaps()) > 0:
		return capsCheck(f, f.lacksCaps())
	case t.Stopped == "" || t.Stopped == host.StepProc:
		return OK("RC-USERNS", "user namespaces can be made and used")
	case lacksNamespace(f) != "":
		return forbidden("RC-USERNS", "this kernel has no "+lacksNamespace(f)+" namespaces",
			"# start this machine with a kernel that has CONFIG_USER_NS, CONFIG_PID_NS, CONFIG_NET_NS, CONFIG_IPC_NS, CONFIG_UTS_NS and CONFIG_CGROUPS")
	case zeroLimit(f) != "":
		return forbidden("RC-USERNS-SYSCTL", "the setting "+zeroLimit(f)+" is 0", raiseLimit(f, zeroLimit(f), 15000))
	case t.Stopped == host.StepMake && errors.Is(t.Err, unix.EPERM) && f.Sysctl(userCloneSetting) == 0 && !f.host.Admin:
		return forbidden("RC-USERNS-CLONE", "the setting "+userCloneSetting+" is 0", f.onHost(sysctlCure(userCloneSetting, "1")...))
	case f.Sysctl(appArmorSetting) == 1 && !f.host.Admin && (f.Container() == "" || t.Stopped == host.StepAdmin):
		return forbidden("RC-USERNS-APPARMOR", "AppArmor gives no rights in a user namespace to a program without a profile", appArmorCure(f))
	case errors.Is(t.Err, unix.ENOSPC) || errors.Is(t.Err, unix.EUSERS):
		return limitCheck(f)
	case f.Container() != "":
		return containerCheck(f)
	}
	return forbidden("RC-USERNS-REFUSED", fmt.Sprintf("the kernel refuses for a reason that toolcell does not know (%v); "+
		"a chroot, SELinux or the settings of the service that started toolcell can be behind it", t.Err),
		"# start toolcell from a login shell outside of any chroot; if SELinux is in the way, this shows it:\n"+f.asRoot("ausearch -m avc -ts recent"))
}

// The settings of Debian's and of Ubuntu's kernels.
const (
	userCloneSetting = "kernel.unprivileged_userns_clone"
	appArmorSetting  = "kernel.apparmor_restrict_unprivileged_userns"
)

func forbidden(code, why, cure string) Check {
	return Fatal(code, "the namespaces of a sandbox cannot be made here, and without them nothing runs: "+why, cure)
}

// lacksNamespace names a kind of namespace that this kernel was built
// without.
func lacksNamespace(f *hostFacts) string {
	if !f.Exists("proc/self/ns") {
		return ""
	}
	for _, kind := range namespaceKinds {
		if !f.Exists("proc/self/ns/" + kind) {
			return kind
		}
	}
	return ""
}

// zeroLimit names a setting that allows no namespace of its kind.
func zeroLimit(f *hostFacts) string {
	for _, kind := range namespaceKinds {
		if name := "user.max_" + kind + "_namespaces"; f.Sysctl(name) == 0 {
			return name
		}
	}
	return ""
}

// raiseLimit sets such a limit. Each user namespace has its own (namespaces(7)),
// which its root may change, but not for the next start of the machine.
func raiseLimit(f *hostFacts, name string, to int) string {
	set := sysctlCure(name, fmt.Sprint(to))
	if f.host.EUID == 0 && f.InUserNamespace() {
		return set[0]
	}
	return f.onHost(set...)
}

func limitCheck(f *hostFacts) Check {
	const name = "user.max_user_namespaces"
	limit := f.Sysctl(name)
	return forbidden("RC-USERNS-LIMIT", fmt.Sprintf("there are as many user namespaces as %s allows (%d), or 32 within each other", name, limit),
		raiseLimit(f, name, max(15000, 2*limit)))
}

func capsCheck(f *hostFacts, lacks []string) Check {
	cure := "# start toolcell with these capabilities: CAP_" + strings.Join(lacks, ", CAP_")
	switch f.Container() {
	case host.EngineDocker, host.EnginePodman:
		cure = "# start the container with these flags more:\n--cap-add=" + strings.Join(lacks, " --cap-add=")
	case host.EngineKubernetes:
		cure = "# in the pod:\nspec:\n  containers:\n  - securityContext:\n      capabilities: {add: [" + strings.Join(lacks, ", ") + "]}"
	}
	return Fatal("RC-CAPS", "root has no CAP_"+strings.Join(lacks, ", CAP_")+" here, and can make no sandbox with ids of its own", cure)
}

func containerCheck(f *hostFacts) Check {
	cure := "# allow user namespaces and mounts in the settings of this container"
	switch f.Container() {
	case host.EngineDocker:
		cure = "# start the container with these flags more:\n" +
			"--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined"
	case host.EnginePodman:
		cure = "# start the container with these flags more:\n" +
			"--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt label=disable --security-opt unmask=ALL"
	case host.EngineKubernetes:
		cure = "# in the pod (appArmorProfile: Kubernetes 1.30 or later):\nspec:\n  containers:\n  - securityContext:\n" +
			"      seccompProfile: {type: Unconfined}\n      appArmorProfile: {type: Unconfined}"
	}
	return forbidden("RC-USERNS-CONTAINER", fmt.Sprintf("this container (%s) does not let programs do it (%v)", f.Container(), f.trial.Err), cure)
}

// appArmorCure returns a profile that lets only this program use user namespaces on Ubuntu
// 23.10 and later.
func appArmorCure(f *hostFacts) string {
	all := sysctlCure(appArmorSetting, "0")
	path, ok := appArmorPath(f.started)
	if !ok || f.Container() != "" || f.InUserNamespace() {
		return f.onHost(all...)
	}
	profile := `tee /etc/apparmor.d/toolcell <<'EOF'
abi <abi/4.0>,
include <tunables/global>
profile toolcell ` + path + ` flags=(unconfined) {
  userns,
}
EOF`
	return f.asRoot(profile, "apparmor_parser -r /etc/apparmor.d/toolcell") + f.startedElsewhere() +
		"\n# or, for every program on this machine:\n" + f.asRoot(all...)
}

// startedElsewhere says that a profile is for the program that clients start, if that is not
// this one.
func (f *hostFacts) startedElsewhere() string {
	if f.started == f.exe {
		return ""
	}
	return "\n# the profile is for the copy of this program that clients start; it is made by: toolcell install CLIENT"
}

// appArmorPath quotes a path for a profile, where some characters form
// patterns (apparmor.d(5), "Globbing"). It gives up on control characters.
func appArmorPath(path string) (string, bool) {
	var b strings.Builder
	for _, c := range []byte(path) {
		switch {
		case c < ' ' || c == 0x7f:
			return "", false
		case strings.IndexByte(`*?[]{}^\"`, c) >= 0:
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return `"` + b.String() + `"`, true
}
