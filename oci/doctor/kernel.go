package doctor

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/oci/host"
)

// kernelRelease is the kernel's version, as uname -r gives it.
func kernelRelease(f *hostFacts) string { return f.Read("proc/sys/kernel/osrelease") }

// olderThan reports whether the kernel is older; false if its version is unknown.
func olderThan(f *hostFacts, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(kernelRelease(f), "%d.%d", &a, &b); n < 2 {
		return false
	}
	return a < major || a == major && b < minor
}

func kernelCheck(f *hostFacts) Check {
	text := "Linux " + kernelRelease(f)
	switch {
	case kernelRelease(f) == "":
		return Degraded("RC-KERNEL", "the kernel does not tell its version: there is no /proc/sys/kernel/osrelease", "")
	case wslVersion(f) == 1:
		return wsl1Check(f)
	case olderThan(f, 4, 6):
		return Fatal("RC-KERNEL", text+" is too old: cgroup namespaces came with 4.6", "# start this machine with a newer kernel, best 5.14 or later")
	case olderThan(f, 5, 14) && !f.host.Cgroup.PIDs:
		return Degraded("RC-KERNEL", text+": before 5.14 the limit on processes counts all that run under one user ID, so that busy sandboxes "+
			"hold each other up; here no cgroup counts them instead", "# start this machine with a kernel of 5.14 or later")
	}
	return OK("RC-KERNEL", text)
}

// wslVersion tells which Windows Subsystem for Linux this is, 0 if none. The first
// one has no Linux kernel and writes its maker's name with a capital letter:
// 4.4.0-19041-Microsoft against 5.15.90.1-microsoft-standard-WSL2.
func wslVersion(f *hostFacts) int {
	switch r := kernelRelease(f); {
	case strings.Contains(r, "microsoft"):
		return 2
	case strings.HasSuffix(r, "-Microsoft"):
		return 1
	}
	return 0
}

func wsl1Check(f *hostFacts) Check {
	name := f.Getenv("WSL_DISTRO_NAME")
	cure := "# in PowerShell on Windows:\n"
	if name == "" {
		cure += "wsl --list --verbose    # shows the name to put for NAME\n"
		name = "NAME"
	}
	return Fatal("RC-WSL1", "this is WSL 1, which has no Linux kernel, so there are no namespaces", cure+"wsl --set-version "+name+" 2")
}

func seccompCheck(f *hostFacts) Check {
	if f.seccomp != nil {
		return Fatal("RC-SECCOMP", "this kernel takes no seccomp filters, without which nothing is run: "+f.seccomp.Error(),
			"# start this machine with a kernel that has CONFIG_SECCOMP_FILTER=y")
	}
	return OK("RC-SECCOMP", "system calls can be filtered")
}

// landlockCheck only informs: no guarantee depends on Landlock.
func landlockCheck(f *hostFacts) Check {
	if f.landlock == 0 {
		return OK("RC-LANDLOCK", "no Landlock (a further wall, which is not required)")
	}
	return OK("RC-LANDLOCK", fmt.Sprintf("Landlock version %d", f.landlock))
}

// procCheck: the kernel refuses a new /proc that would reveal the parts covered
// in ours (mount_namespaces(7)).
func procCheck(f *hostFacts) Check {
	if f.trial.Stopped != host.StepProc {
		return OK("RC-PROC", "a sandbox can have a /proc of its own")
	}
	cure := ""
	switch f.Container() {
	case host.EngineDocker:
		cure = "# start the container with this flag more:\n--security-opt systempaths=unconfined"
	case host.EnginePodman:
		cure = "# start the container with this flag more:\n--security-opt unmask=ALL"
	case host.EngineKubernetes:
		cure = "# in the pod (Kubernetes 1.33 or later):\nspec:\n  hostUsers: false\n  containers:\n  - securityContext:\n      procMount: Unmasked"
	}
	text := "sandboxes have no /proc, and Python code that reads it fails: the one here is partly covered"
	if covers := procCovers(f); covers != "" {
		text += " (" + covers + ")"
	}
	return Degraded("RC-PROC", text, cure)
}

// procCovers names some of what is mounted over parts of /proc.
func procCovers(f *hostFacts) string {
	var over []string
	for line := range strings.Lines(f.Read("proc/self/mountinfo")) {
		if m := strings.Fields(line); len(m) > 4 && strings.HasPrefix(m[4], "/proc/") && m[4] != "/proc/sys/fs/binfmt_misc" {
			over = append(over, m[4])
		}
	}
	if len(over) > 3 {
		over = append(over[:3], "…")
	}
	return strings.Join(over, ", ")
}
