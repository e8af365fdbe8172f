package doctor

import (
	"fmt"
	"strings"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// cgroupCheck reports why a cgroup cannot enforce a requested limit. It describes the
// consequences as in the notes of a run.
func cgroupCheck(f *hostFacts) Check {
	h, l := f.host, f.needs.Limits
	h.NoProc = false // procCheck reports it
	lost := Missing(h, l)
	c := h.Cgroup
	if l.PIDs > 0 && !c.PIDs && c.Driver != host.CgroupNone {
		lost = append(lost, "processes are counted by an rlimit instead of a cgroup")
	}
	if len(lost) == 0 && c.Driver == host.CgroupNone {
		lost = []string{"there is no cgroup: " + c.Why}
	}
	if len(lost) == 0 {
		return OK("RC-CGROUP", "cgroups keep the limits"+unusedController(f))
	}
	text := strings.Join(lost, "; ")
	switch {
	case wslVersion(f) == 2 && (!c.V2 || !f.Systemd()):
		return wsl2Check(f, text)
	case h.EUID == 0:
		return rootCgroupCheck(f, text)
	case !c.V2:
		return Degraded("RC-CGROUP-V1", text, cgroup2Cure(f))
	case !f.Systemd():
		return Degraded("RC-CGROUP-NONE", text+"; nothing else hands one to an ordinary user", "")
	case c.Driver == host.CgroupNone && !f.Exists(runtimeDir(f)+"/bus"):
		return Degraded("RC-CGROUP-BUS", text, userManagerCure(f))
	case c.Driver == host.CgroupNone && f.Getenv("XDG_RUNTIME_DIR") != "/"+runtimeDir(f) && f.Getenv("XDG_RUNTIME_DIR") != "":
		return Degraded("RC-CGROUP-BUS", text, "export XDG_RUNTIME_DIR=/"+runtimeDir(f))
	}
	return Degraded("RC-CGROUP-DELEGATE", text, delegateCure(f))
}

// unusedController names a limit that could not be enforced if it were set.
func unusedController(f *hostFacts) string {
	if f.host.Cgroup.CPU {
		return ""
	}
	return " (CPU time could not be limited, if TOOLCELL_CPUS were set)"
}

func runtimeDir(f *hostFacts) string { return fmt.Sprintf("run/user/%d", f.host.EUID) }

// rootCgroupCheck: root of a host may make cgroups; if it may not, this is a container or
// something similar.
func rootCgroupCheck(f *hostFacts, text string) Check {
	readOnly := false
	for line := range strings.Lines(f.Read("proc/self/mountinfo")) {
		m := strings.Fields(line)
		if len(m) > 5 && strings.HasPrefix(m[4], "/sys/fs/cgroup") && strings.HasPrefix(m[5]+",", "ro,") {
			readOnly = true
		}
	}
	if readOnly {
		text += "; /sys/fs/cgroup is read-only, as in most containers"
	}
	cure := ""
	switch e := f.Container(); {
	case (e == host.EngineDocker || e == host.EnginePodman) && !f.host.Admin:
		cure = "# limit the container as a whole, for example: " + e + " run --memory=2g --pids-limit=1024 --cpus=2"
	case e == host.EngineKubernetes && !f.host.Admin:
		cure = "# limit the container as a whole, in the pod:\nresources: {limits: {memory: 2Gi, cpu: \"2\"}}"
	}
	return Degraded("RC-CGROUP-ROOT", text, cure)
}

// cgroup2Cure switches the machine to cgroup v2. Only systemd delegates cgroups to ordinary
// users, so without it a restart is not worth it.
func cgroup2Cure(f *hostFacts) string {
	const parameter = "systemd.unified_cgroup_hierarchy=1"
	restart := "# then start the machine again"
	switch {
	case !f.Systemd() || f.Container() != "":
		return ""
	case f.Program("grubby") != "":
		return f.asRoot(`grubby --update-kernel=ALL --args="`+parameter+`"`, restart)
	case f.Program("update-grub") != "" && f.Exists("etc/default/grub"):
		return f.asRoot("mkdir -p /etc/default/grub.d",
			`echo 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX `+parameter+`"' | tee /etc/default/grub.d/toolcell.cfg`,
			"update-grub", restart)
	}
	return "# start the machine with this on the kernel's command line:\n" + parameter
}

// delegateCure delegates all controllers to the users' systemd managers, which
// by default have two or three.
func delegateCure(f *hostFacts) string {
	return f.asRoot("mkdir -p /etc/systemd/system/user@.service.d",
		"tee /etc/systemd/system/user@.service.d/delegate.conf <<'EOF'\n[Service]\nDelegate=cpu cpuset io memory pids\nEOF",
		"systemctl daemon-reload", "# then log out of all sessions and in again, or start the machine again")
}

// userManagerCure starts the user's systemd manager and its bus, and waits for it. Unlike a
// login, su, cron and services do not start it.
func userManagerCure(f *hostFacts) string {
	if f.Exists(runtimeDir(f) + "/systemd") { // it runs, without a bus
		if cure := f.install(packageNames{"apt-get": "dbus-user-session"}); cure != "" {
			return cure + "\n# then log out and in again"
		}
		return ""
	}
	// The manager starts in the background.
	return f.asRoot("loginctl enable-linger "+f.user) + "\n" +
		"timeout 30 sh -c 'until test -S /" + runtimeDir(f) + "/bus; do sleep 1; done'"
}

// wsl2Check: by default, WSL mounts cgroup v1 beside v2, and older versions do not start
// systemd.
func wsl2Check(f *hostFacts, text string) Check {
	var cure []string
	if !f.host.Cgroup.V2 {
		cure = append(cure, `# put this in the file %UserProfile%\.wslconfig on Windows:`,
			"[wsl2]", "kernelCommandLine = cgroup_no_v1=all systemd.unified_cgroup_hierarchy=1")
	}
	if !f.Systemd() {
		if strings.Contains(f.Read("etc/wsl.conf"), "[boot]") {
			cure = append(cure, "# put this in /etc/wsl.conf, under [boot]:", "systemd=true")
		} else {
			cure = append(cure, f.asRoot(`printf '[boot]\nsystemd=true\n' | tee -a /etc/wsl.conf`))
		}
	}
	cure = append(cure, "# then in PowerShell on Windows, which ends all that runs in WSL:", "wsl --shutdown")
	return Degraded("RC-WSL", text+" (this is WSL 2)", strings.Join(cure, "\n"))
}

// Isolation describes how a sandbox on h differs from a full one, with the names in
// docs/security.md; it is empty if there is no difference.
func Isolation(h host.Host, l spec.Limits) string {
	var out []string
	if h.UIDs.User < 0 || h.GIDs.User < 0 {
		out = append(out, "all sandboxes share one user ID (one-id)")
	}
	if l.Memory > 0 && !h.Cgroup.Memory || l.PIDs > 0 && !h.Cgroup.PIDs || l.CPUs > 0 && !h.Cgroup.CPU {
		out = append(out, "limits are kept by watching, not by cgroups (watched-limits)")
	}
	if h.NoProc {
		out = append(out, "there is no /proc (no-proc)")
	}
	return strings.Join(out, "; ")
}

// Missing lists what h lacks, each with its consequences.
func Missing(h host.Host, l spec.Limits) []string {
	var out []string
	c := h.Cgroup
	why := c.Why
	if why == "" {
		why = "its cgroup controller is not delegated"
	}
	if l.Memory > 0 && !c.Memory {
		out = append(out, "memory is limited by watching, not by a cgroup, and can be overshot for some milliseconds: "+why)
	}
	if l.CPUs > 0 && !c.CPU {
		out = append(out, "CPU time is limited in whole processors, not by a cgroup: "+why)
	}
	if h.NoProc {
		out = append(out, "the sandbox has no /proc: this host covers parts of its own, as containers do")
	}
	return out
}
