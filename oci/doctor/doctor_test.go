package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// A fakeHost is a host that exists only here: the files that the checks read,
// and the kernel's answers. Everything left out is as on a host that has
// everything.
type fakeHost struct {
	files  map[string]string // a name that ends in / is a folder; "-" takes a file away
	modes  map[string]fs.FileMode
	env    map[string]string
	change func(f *hostFacts)
	checks map[string]string // code → a part of the cure, "" for none; what is not here is ok
}

const wholeIDMap = "         0          0 4294967295\n"

// facts builds a Debian desktop with cgroup v2, systemd and a user called ann,
// and changes it.
func (h fakeHost) facts() *hostFacts {
	all := fstest.MapFS{}
	put := func(name, text string) {
		switch {
		case text == "-":
			delete(all, strings.TrimSuffix(name, "/"))
		case strings.HasSuffix(name, "/"):
			all[strings.TrimSuffix(name, "/")] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		default:
			all[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o755}
		}
	}
	for name, text := range map[string]string{
		"proc/sys/kernel/osrelease": "6.12.0-1-amd64\n", "proc/sys/user/max_user_namespaces": "96365\n",
		"proc/self/uid_map": wholeIDMap, "proc/self/status": "Name:\ttoolcell\nCapEff:\t00000000a80425fb\nNoNewPrivs:\t0\n", "proc/self/mountinfo": "",
		"etc/os-release": "PRETTY_NAME=\"Debian\"\nID=debian\n", "etc/passwd": "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n",
		"etc/subuid": "ann:100000:65536\n", "etc/subgid": "ann:100000:65536\n",
		"run/systemd/system/": "", "run/user/1000/bus": "", "run/user/1000/systemd/": "",
		"usr/bin/newuidmap": "", "usr/bin/newgidmap": "", "usr/bin/sudo": "", "usr/sbin/usermod": "", "etc/security/limits.d/": "",
	} {
		put(name, text)
	}
	for _, kind := range namespaceKinds {
		put("proc/self/ns/"+kind, "")
	}
	for name, text := range h.files {
		put(name, text)
	}
	for _, tool := range []string{"usr/bin/newuidmap", "usr/bin/newgidmap"} {
		if all[tool] != nil {
			all[tool].Mode |= fs.ModeSetuid
		}
	}
	for name, mode := range h.modes {
		all[name].Mode = mode
	}
	f := &hostFacts{
		Files: all,
		Getenv: func(name string) string {
			if v, ok := h.env[name]; ok {
				return v
			}
			return map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin"}[name]
		},
		FileCaps: func(string) bool { return false },
		host: host.Host{
			EUID: 1000, UIDs: host.IDMap{Root: 1000, User: 100000}, GIDs: host.IDMap{Root: 1000, User: 100000},
			Cgroup: host.Cgroup{Driver: host.CgroupSystemd, V2: true, Memory: true, PIDs: true, CPU: true, Swap: true},
		},
		needs: Needs{Limits: spec.Limits{Memory: 512 << 20, PIDs: 128}, Images: "/home/ann/.cache/toolcell", Python: "/usr/bin/python3"},
		exe:   "/home/ann/.local/bin/toolcell", started: "/home/ann/.local/bin/toolcell", user: "ann", landlock: 7,
		folders: []folder{{Path: "/home/ann/.cache/toolcell", At: "/home/ann/.cache", Owner: 1000, Free: 90 << 30}},
	}
	if h.change != nil {
		h.change(f)
	}
	return f
}

func stopped(step string, err error) func(*hostFacts) {
	return func(f *hostFacts) { f.trial = host.NamespaceProbe{Stopped: step, Err: err} }
}

// asRoot is root of a host, or of a container if it may not do much.
func asRoot(admin bool) func(*hostFacts) {
	return func(f *hostFacts) {
		f.user, f.host.EUID, f.host.Admin = "root", 0, admin
		f.host.UIDs, f.host.GIDs = host.IDMap{Root: host.BaseID, User: host.BaseID + 65534}, host.IDMap{Root: host.BaseID, User: host.BaseID + 65534}
	}
}

func both(changes ...func(*hostFacts)) func(*hostFacts) {
	return func(f *hostFacts) {
		for _, c := range changes {
			c(f)
		}
	}
}

func noCgroup(v2 bool, why string) func(*hostFacts) {
	return func(f *hostFacts) { f.host.Cgroup = host.Cgroup{V2: v2, Why: why} }
}

func oneMapped(f *hostFacts) { f.host.UIDs.User, f.host.GIDs.User = -1, -1 }

func folderIs(d folder) func(*hostFacts) {
	return func(f *hostFacts) {
		d.Path = f.needs.Images
		f.folders = []folder{d, d}
	}
}

func folderRights(all ...rights) func(*hostFacts) {
	return func(f *hostFacts) { f.folders[0].Rights = all }
}

const dockerCgroup = "0::/system.slice/docker-1234.scope\n"

var fakeHosts = map[string]fakeHost{
	"a host with everything": {},
	"root":                   {change: asRoot(true)},
	"Ubuntu 24.04": {
		files:  map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "etc/os-release": "ID=ubuntu\nID_LIKE=debian\n"},
		change: stopped(host.StepAdmin, unix.EPERM),
		checks: map[string]string{"RC-USERNS-APPARMOR": "sudo tee /etc/apparmor.d/toolcell <<'EOF'\nabi <abi/4.0>,\ninclude <tunables/global>\n" +
			"profile toolcell \"/home/ann/.local/bin/toolcell\" flags=(unconfined) {\n  userns,\n}\nEOF\n" +
			"sudo apparmor_parser -r /etc/apparmor.d/toolcell\n# or, for every program on this machine:\n" +
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\n" +
			"echo 'kernel.apparmor_restrict_unprivileged_userns=0' | sudo tee -a /etc/sysctl.d/60-toolcell.conf"},
	},
	"Ubuntu 24.04 without its profile for user namespaces": {
		files:  map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"},
		change: stopped(host.StepMake, unix.EACCES),
		checks: map[string]string{"RC-USERNS-APPARMOR": "profile toolcell"},
	},
	"Ubuntu 24.04, where uvx runs it": {
		files:  map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"},
		change: both(stopped(host.StepAdmin, unix.EPERM), func(f *hostFacts) { f.exe = "/home/ann/.cache/uv/archive-v0/x/bin/toolcell" }),
		checks: map[string]string{"RC-USERNS-APPARMOR": "profile toolcell \"/home/ann/.local/bin/toolcell\" flags=(unconfined) {\n  userns,\n}\nEOF\n" +
			"sudo apparmor_parser -r /etc/apparmor.d/toolcell\n# the profile is for the copy of this program that clients start"},
	},
	"Ubuntu 24.04 with our profile": {
		files: map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"},
	},
	"Ubuntu 24.04 with a path that cannot stand in a profile": {
		files:  map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"},
		change: both(stopped(host.StepAdmin, unix.EPERM), func(f *hostFacts) { f.started = "/tmp/a\nb" }),
		checks: map[string]string{"RC-USERNS-APPARMOR": "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0\necho"},
	},
	"unconfined Docker on Ubuntu 24.04": {
		files:  map[string]string{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", ".dockerenv": ""},
		change: both(asRoot(false), stopped(host.StepAdmin, unix.EPERM)),
		checks: map[string]string{"RC-USERNS-APPARMOR": "# on the host, outside this container:\nsudo sysctl -w kernel.apparmor"},
	},
	"Debian that forbids": {
		files:  map[string]string{"proc/sys/kernel/unprivileged_userns_clone": "0\n"},
		change: stopped(host.StepMake, unix.EPERM),
		checks: map[string]string{"RC-USERNS-CLONE": "sudo sysctl -w kernel.unprivileged_userns_clone=1\n" +
			"echo 'kernel.unprivileged_userns_clone=1' | sudo tee -a /etc/sysctl.d/60-toolcell.conf"},
	},
	"Debian that forbids it to all but root": {
		files:  map[string]string{"proc/sys/kernel/unprivileged_userns_clone": "0\n"},
		change: asRoot(true),
	},
	"no user namespaces, by a setting": {
		files:  map[string]string{"proc/sys/user/max_user_namespaces": "0\n"},
		change: stopped(host.StepMake, unix.ENOSPC),
		checks: map[string]string{"RC-USERNS-SYSCTL": "sudo sysctl -w user.max_user_namespaces=15000\n" +
			"echo 'user.max_user_namespaces=15000' | sudo tee -a /etc/sysctl.d/60-toolcell.conf"},
	},
	"no user namespaces for root": {
		files:  map[string]string{"proc/sys/user/max_user_namespaces": "0\n"},
		change: both(asRoot(true), stopped(host.StepMake, unix.ENOSPC)),
		checks: map[string]string{"RC-USERNS-SYSCTL": "sysctl -w user.max_user_namespaces=15000\necho 'user.max_user_namespaces=15000' | tee"},
	},
	"no network namespaces, in a user namespace": {
		files:  map[string]string{"proc/sys/user/max_net_namespaces": "0\n", "proc/self/uid_map": "0 1000 1\n"},
		change: both(asRoot(false), stopped(host.StepMake, unix.ENOSPC)),
		checks: map[string]string{"RC-USERNS-SYSCTL": "sysctl -w user.max_net_namespaces=15000"},
	},
	"too many user namespaces": {
		change: stopped(host.StepMake, unix.ENOSPC),
		checks: map[string]string{"RC-USERNS-LIMIT": "sudo sysctl -w user.max_user_namespaces=192730"},
	},
	"a kernel without network namespaces": {
		files:  map[string]string{"proc/self/ns/net": "-"},
		change: stopped(host.StepMake, unix.EINVAL),
		checks: map[string]string{"RC-USERNS": "CONFIG_NET_NS"},
	},
	"a chroot": {
		change: stopped(host.StepMake, unix.EPERM),
		checks: map[string]string{"RC-USERNS-REFUSED": "sudo ausearch"},
	},
	"Docker": {
		files: map[string]string{
			".dockerenv": "", "proc/1/cgroup": "0::/\n", "run/systemd/system/": "-", "usr/bin/sudo": "-",
			"proc/self/mountinfo": "1 2 0:3 / /sys/fs/cgroup ro,nosuid,nodev - cgroup2 cgroup rw\n",
		},
		change: both(asRoot(false), stopped(host.StepMake, unix.EPERM), noCgroup(true, "no cgroup can be made here (read-only file system)")),
		checks: map[string]string{
			"RC-USERNS-CONTAINER": "--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined",
			"RC-CGROUP-ROOT":      "docker run --memory=2g",
		},
	},
	"Docker, user namespaces allowed": {
		files:  map[string]string{"proc/1/cgroup": dockerCgroup, "proc/self/mountinfo": "1 2 0:3 / /proc/kcore rw - tmpfs tmpfs rw\n1 2 0:3 / /proc/keys rw - tmpfs tmpfs rw\n"},
		change: both(asRoot(false), stopped(host.StepProc, unix.EPERM)),
		checks: map[string]string{"RC-PROC": "--security-opt systempaths=unconfined"},
	},
	"Docker without capabilities": {
		files:  map[string]string{".dockerenv": "", "proc/self/status": "CapEff:\t0000000000000040\n"},
		change: both(asRoot(false), stopped(host.StepMake, unix.EPERM)),
		checks: map[string]string{"RC-CAPS": "--cap-add=SETUID --cap-add=CHOWN --cap-add=DAC_OVERRIDE"},
	},
	"Kubernetes without capabilities": {
		files:  map[string]string{"var/run/secrets/kubernetes.io/": "", "proc/self/status": "CapEff:\t0000000000000000\n"},
		change: both(asRoot(false), stopped(host.StepMake, unix.EPERM)),
		checks: map[string]string{"RC-CAPS": "capabilities: {add: [SETUID, SETGID, CHOWN, DAC_OVERRIDE]}"},
	},
	"Docker that forbids mounts": {
		files:  map[string]string{".dockerenv": ""},
		change: both(asRoot(false), stopped(host.StepMount, unix.EACCES)),
		checks: map[string]string{"RC-USERNS-CONTAINER": "apparmor=unconfined"},
	},
	"Podman": {
		files:  map[string]string{"run/.containerenv": "", "proc/self/uid_map": "0 1000 1\n1 100000 65536\n"},
		change: both(asRoot(false), stopped(host.StepProc, unix.EPERM), noCgroup(true, "no cgroup can be made here (read-only file system)"), func(f *hostFacts) { f.host.HardLimits = map[int]uint64{unix.RLIMIT_NOFILE: 512} }),
		checks: map[string]string{"RC-PROC": "--security-opt unmask=ALL", "RC-CGROUP-ROOT": "podman run --memory=2g", "RC-FILES": "--ulimit nofile=4096:4096"},
	},
	"Podman that forbids": {
		files:  map[string]string{"run/systemd/container": "podman\n"},
		change: both(asRoot(false), stopped(host.StepMake, unix.EPERM)),
		checks: map[string]string{"RC-USERNS-CONTAINER": "label=disable --security-opt unmask=ALL"},
	},
	"Kubernetes": {
		files:  map[string]string{"etc/hosts": "# Kubernetes-managed hosts file.\n127.0.0.1 localhost\n", "proc/self/status": "NoNewPrivs:\t1\n", "run/systemd/system/": "-"},
		change: both(stopped(host.StepMake, unix.EPERM), oneMapped, noCgroup(true, "no cgroup is delegated to this user, and systemd is not running")),
		checks: map[string]string{
			"RC-USERNS-CONTAINER": "securityContext:\n      seccompProfile: {type: Unconfined}",
			"RC-IDS-NOPRIVS":      "allowPrivilegeEscalation: true",
			"RC-CGROUP-NONE":      "",
		},
	},
	"Kubernetes as root, user namespaces allowed": {
		env:    map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
		change: both(asRoot(false), stopped(host.StepProc, unix.EPERM), noCgroup(true, "read-only")),
		checks: map[string]string{"RC-PROC": "hostUsers: false\n  containers:\n  - securityContext:\n      procMount: Unmasked", "RC-CGROUP-ROOT": "resources: {limits:"},
	},
	"LXC": {
		files:  map[string]string{"run/systemd/container": "lxc\n"},
		change: stopped(host.StepMake, unix.EPERM),
		checks: map[string]string{"RC-USERNS-CONTAINER": "settings of this container"},
	},
	"WSL 2": {
		files:  map[string]string{"proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n", "run/systemd/container": "wsl\n", "run/systemd/system/": "-", "etc/wsl.conf": "-"},
		change: noCgroup(false, "this host has cgroup v1, which an ordinary user cannot use"),
		checks: map[string]string{"RC-WSL": "kernelCommandLine = cgroup_no_v1=all systemd.unified_cgroup_hierarchy=1\nprintf '[boot]\\nsystemd=true\\n' | sudo tee -a /etc/wsl.conf\n" +
			"# then in PowerShell on Windows, which ends all that runs in WSL:\nwsl --shutdown"},
	},
	"WSL 2 with a boot section": {
		files:  map[string]string{"proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n", "run/systemd/system/": "-", "etc/wsl.conf": "[boot]\ncommand=true\n"},
		change: noCgroup(true, "no cgroup is delegated to this user, and systemd is not running"),
		checks: map[string]string{"RC-WSL": "# put this in /etc/wsl.conf, under [boot]:\nsystemd=true\n# then"},
	},
	"WSL 2 with all": {files: map[string]string{"proc/sys/kernel/osrelease": "6.6.87.2-microsoft-standard-WSL2\n"}},
	"WSL 1": {
		files: map[string]string{"proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft\n"}, env: map[string]string{"WSL_DISTRO_NAME": "Ubuntu"},
		checks: map[string]string{"RC-WSL1": "wsl --set-version Ubuntu 2"},
	},
	"RHEL 8": {
		files:  map[string]string{"proc/sys/kernel/osrelease": "4.18.0-553.el8.x86_64\n", "etc/os-release": "ID=\"rhel\"\nID_LIKE=\"fedora\"\n", "usr/sbin/grubby": ""},
		change: noCgroup(false, "this host has cgroup v1, which an ordinary user cannot use"),
		checks: map[string]string{"RC-KERNEL": "5.14", "RC-CGROUP-V1": "sudo grubby --update-kernel=ALL --args=\"systemd.unified_cgroup_hierarchy=1\""},
	},
	"Debian 10": {
		files:  map[string]string{"usr/sbin/update-grub": "", "etc/default/grub": "GRUB_CMDLINE_LINUX=\"\"\n"},
		change: noCgroup(false, "this host has cgroup v1, which an ordinary user cannot use"),
		checks: map[string]string{"RC-CGROUP-V1": "sudo mkdir -p /etc/default/grub.d\n" +
			"echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX systemd.unified_cgroup_hierarchy=1\"' | sudo tee /etc/default/grub.d/toolcell.cfg\nsudo update-grub\n#"},
	},
	"cgroup v1, another boot loader": {
		change: noCgroup(false, "this host has cgroup v1, which an ordinary user cannot use"),
		checks: map[string]string{"RC-CGROUP-V1": "kernel's command line:\nsystemd.unified_cgroup_hierarchy=1"},
	},
	"an old kernel": {
		files:  map[string]string{"proc/sys/kernel/osrelease": "3.10.0-1160.el7.x86_64\n"},
		checks: map[string]string{"RC-KERNEL": "newer kernel"},
	},
	"a kernel of no version": {files: map[string]string{"proc/sys/kernel/osrelease": "-"}, checks: map[string]string{"RC-KERNEL": ""}},
	"no subordinate ids": {
		files: map[string]string{
			"etc/subuid": "bob:100000:65536\neve:231072:65536\n", "etc/subgid": "bob:100000:65536\n",
			"etc/passwd": "ann:x:1000:1000::/:/bin/sh\nad:x:165540:5::/:/bin/sh\n",
		},
		change: oneMapped,
		checks: map[string]string{"RC-IDS-SUBID": "sudo usermod --add-subuids 296608-362143 --add-subgids 296608-362143 ann"},
	},
	"no subordinate groups": {
		files:  map[string]string{"etc/subgid": "-"},
		change: oneMapped,
		checks: map[string]string{"RC-IDS-SUBID": "sudo usermod --add-subgids 165536-231071 ann"},
	},
	"a subordinate range that is oneself": {
		files:  map[string]string{"etc/subuid": "ann:500:65536\n"},
		change: oneMapped,
		checks: map[string]string{"RC-IDS-SUBID": "sudo usermod --add-subuids 165536-231071 ann"},
	},
	"no ids are left": {
		files:  map[string]string{"etc/subuid": "bob:100000:1879000000\n"},
		change: oneMapped,
		checks: map[string]string{"RC-IDS-SUBID": ""},
	},
	"Alpine": {
		files: map[string]string{
			"etc/os-release": "ID=alpine\n", "etc/subuid": "-", "etc/subgid": "-", "usr/bin/newuidmap": "-", "usr/bin/newgidmap": "-",
			"usr/sbin/usermod": "-", "usr/bin/sudo": "-", "usr/bin/doas": "", "run/systemd/system/": "-",
		},
		change: both(oneMapped, noCgroup(true, "no cgroup is delegated to this user, and systemd is not running")),
		checks: map[string]string{"RC-IDS-SUBID": "echo 'ann:100000:65536' | doas tee -a /etc/subuid /etc/subgid", "RC-IDS-TOOLS": "doas apk add shadow-uidmap", "RC-CGROUP-NONE": ""},
	},
	"Fedora": {
		files:  map[string]string{"etc/os-release": "ID=fedora\n", "usr/bin/newgidmap": "-"},
		change: both(oneMapped, func(f *hostFacts) { f.needs.Python, f.needs.PythonErr = "", errors.New("no python3") }),
		checks: map[string]string{"RC-IDS-TOOLS": "sudo dnf install shadow-utils", "RC-PYTHON": "sudo dnf install python3"},
	},
	"openSUSE": {
		files:  map[string]string{"etc/os-release": "ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n", "usr/bin/newuidmap": "-"},
		change: oneMapped, checks: map[string]string{"RC-IDS-TOOLS": "sudo zypper install shadow"},
	},
	"Arch": {
		files:  map[string]string{"etc/os-release": "ID=arch\n", "usr/bin/newuidmap": "-"},
		change: oneMapped, checks: map[string]string{"RC-IDS-TOOLS": "sudo pacman -S shadow"},
	},
	"a distribution that nobody knows": {
		files:  map[string]string{"etc/os-release": "ID=nixos\n", "usr/bin/newuidmap": "-"},
		change: oneMapped, checks: map[string]string{"RC-IDS-TOOLS": ""},
	},
	"newuidmap without setuid": {
		modes:  map[string]fs.FileMode{"usr/bin/newuidmap": 0o755},
		change: oneMapped, checks: map[string]string{"RC-IDS-SETUID": "sudo chown root:root /usr/bin/newuidmap\nsudo chmod u+s /usr/bin/newuidmap"},
	},
	"newuidmap with file capabilities": {
		modes:  map[string]fs.FileMode{"usr/bin/newuidmap": 0o755, "usr/bin/newgidmap": 0o755},
		change: func(f *hostFacts) { f.FileCaps = func(string) bool { return true } },
	},
	"a small /run": {
		change: func(f *hostFacts) {
			f.folders = []folder{{Path: f.needs.Images, Free: 9 << 30}, {Path: "/run/user/1000/toolcell", Free: 197 << 20}}
		},
	},
	"root of a user namespace": {
		files: map[string]string{"proc/self/uid_map": "0 1000 1\n"},
		change: both(asRoot(false), func(f *hostFacts) {
			f.host.UIDs, f.host.GIDs = host.IDMap{Root: 0, User: -1}, host.IDMap{Root: 0, User: -1}
		}),
		checks: map[string]string{"RC-IDS-ROOT": ""},
	},
	"CPU time is not delegated, and not asked for": {change: func(f *hostFacts) { f.host.Cgroup.CPU = false }},
	"CPU time is not delegated": {
		change: func(f *hostFacts) { f.host.Cgroup.CPU, f.needs.Limits.CPUs = false, 2 },
		checks: map[string]string{"RC-CGROUP-DELEGATE": "sudo mkdir -p /etc/systemd/system/user@.service.d\n" +
			"sudo tee /etc/systemd/system/user@.service.d/delegate.conf <<'EOF'\n[Service]\nDelegate=cpu cpuset io memory pids\nEOF\nsudo systemctl daemon-reload\n#"},
	},
	"processes are not delegated": {
		change: func(f *hostFacts) { f.host.Cgroup.PIDs = false },
		checks: map[string]string{"RC-CGROUP-DELEGATE": "Delegate=cpu"},
	},
	"nothing is delegated": {
		change: noCgroup(true, "systemd delegates neither memory nor pids to this user"),
		checks: map[string]string{"RC-CGROUP-DELEGATE": "Delegate=cpu"},
	},
	"no user manager": {
		files:  map[string]string{"run/user/1000/bus": "-", "run/user/1000/systemd/": "-"},
		change: noCgroup(true, "the user's systemd manager was not found (no XDG_RUNTIME_DIR, no bus)"),
		checks: map[string]string{"RC-CGROUP-BUS": "sudo loginctl enable-linger ann\ntimeout 30 sh -c 'until test -S /run/user/1000/bus; do sleep 1; done'"},
	},
	"a user manager without a bus": {
		files:  map[string]string{"run/user/1000/bus": "-"},
		change: noCgroup(true, "the user's systemd manager was not found (no XDG_RUNTIME_DIR, no bus)"),
		checks: map[string]string{"RC-CGROUP-BUS": "sudo apt-get install dbus-user-session"},
	},
	"another's runtime folder": {
		env:    map[string]string{"XDG_RUNTIME_DIR": "/run/user/0"},
		change: noCgroup(true, "the user's systemd manager was not found (no XDG_RUNTIME_DIR, no bus)"),
		checks: map[string]string{"RC-CGROUP-BUS": "export XDG_RUNTIME_DIR=/run/user/1000"},
	},
	"something mounted in /usr": {
		files:  map[string]string{"proc/self/mountinfo": "30 20 0:40 / /usr/lib/wsl\\040drivers ro - 9p drivers ro\n31 20 0:41 / /usrlocal rw - tmpfs none rw\n"},
		checks: map[string]string{"RC-SUBMOUNT": "# use an image:\n/home/ann/.local/bin/toolcell settings set image "},
	},
	"the same with a newer kernel": {
		files:  map[string]string{"proc/self/mountinfo": "30 20 0:40 / /usr/lib/wsl ro - 9p drivers ro\n"},
		change: func(f *hostFacts) { f.host.Recursive = true },
	},
	"a kernel without seccomp":  {change: func(f *hostFacts) { f.seccomp = unix.EINVAL }, checks: map[string]string{"RC-SECCOMP": "CONFIG_SECCOMP_FILTER"}},
	"a kernel without Landlock": {change: func(f *hostFacts) { f.landlock = 0 }},
	"a read-only home": {
		change: folderIs(folder{At: "/home/ann", Owner: 1000, Err: unix.EROFS}),
		checks: map[string]string{"RC-STATE": "mkdir -m 700 /var/tmp/toolcell-1000 && export TOOLCELL_STATE_DIR=/var/tmp/toolcell-1000"},
	},
	"a HOME that does not exist": {
		env: map[string]string{"HOME": "/nonexistent"}, files: map[string]string{"home/ann/": ""},
		change: func(f *hostFacts) {
			f.folders = []folder{{Path: "/nonexistent/.cache/toolcell", At: "/", Err: unix.EACCES, Free: 9 << 30}}
		},
		checks: map[string]string{"RC-STATE": "export HOME=/home/ann\n# or use another folder:\nmkdir -m 700 /var/tmp/toolcell-1000"},
	},
	"a HOME that does not exist, as of a service": {
		env: map[string]string{"HOME": "/nonexistent"}, files: map[string]string{"etc/passwd": "ann:x:1000:1000::/nonexistent:/bin/sh\n"},
		change: func(f *hostFacts) {
			f.folders = []folder{{Path: "/nonexistent/.cache/toolcell", At: "/", Err: unix.EACCES, Free: 9 << 30}}
		},
		checks: map[string]string{"RC-STATE": "mkdir -m 700 /var/tmp/toolcell-1000"},
	},
	"a cache that root has made": {
		change: folderIs(folder{At: "/home/ann/my files/.cache/toolcell", Err: unix.EACCES}),
		checks: map[string]string{"RC-STATE": "sudo chown -R ann '/home/ann/my files/.cache/toolcell'"},
	},
	"a full disk": {
		change: folderIs(folder{At: "/home/ann", Owner: 1000, Err: unix.ENOSPC}),
		checks: map[string]string{"RC-STATE-FULL": "df -h /home/ann\n"},
	},
	"a disk that is nearly full": {
		change: folderIs(folder{At: "/home/ann", Owner: 1000, Free: 199 << 20}),
		checks: map[string]string{"RC-STATE-FULL": "df -h /home/ann\n"},
	},
	"a full disk beside another": {
		change: both(folderIs(folder{At: "/home/ann", Owner: 1000, Err: unix.ENOSPC}), func(f *hostFacts) {
			f.spare = folder{Path: "/var/tmp/toolcell-1000", At: "/var/tmp", Dev: 7, Free: 90 << 30}
		}),
		checks: map[string]string{"RC-STATE-FULL": "/home/ann/.local/bin/toolcell images prune --unused 30\n" +
			"# or use another disk, which has 90 GB left:\nmkdir -m 700 /var/tmp/toolcell-1000 && export TOOLCELL_STATE_DIR=/var/tmp/toolcell-1000"},
	},
	"a home without programs": {
		change: folderIs(folder{At: "/home/ann", Owner: 1000, Free: 9 << 30, NoExec: true}),
		checks: map[string]string{"RC-STATE-NOEXEC": "mkdir -m 700 /var/tmp/toolcell-1000"},
	},
	"a state folder that sandboxes cannot enter": {
		change: both(asRoot(false), folderIs(folder{At: "/root/.cache", Free: 9 << 30, Closed: "/root"})),
		checks: map[string]string{"RC-STATE-CLOSED": "mkdir -m 755 /var/lib/toolcell && export TOOLCELL_STATE_DIR=/var/lib/toolcell"},
	},
	"another's state folder": {
		change: folderRights(rights{"/home/ann/.cache/toolcell", 1001, 1001, 0o755}),
		checks: map[string]string{"RC-STATE-OTHERS": "sudo chown -R ann /home/ann/.cache/toolcell\n# or use another folder:\nmkdir -m 700 /var/tmp/toolcell-1000"},
	},
	"a state folder that all may write to": {
		change: folderRights(rights{"/srv/s", 1000, 1000, 0o757}),
		checks: map[string]string{"RC-STATE-OTHERS": "chmod go-w /srv/s"},
	},
	"a state folder that a group may write to": {
		change: folderRights(rights{"/srv/s", 1000, 100, 0o775}),
		checks: map[string]string{"RC-STATE-OTHERS": "chmod go-w /srv/s"},
	},
	"a state folder in one that all may write to": {
		change: folderRights(rights{"/srv/s/x", 1000, 1000, 0o700}, rights{"/srv/s", 0, 0, 0o777}),
		checks: map[string]string{"RC-STATE-OTHERS": "mkdir -m 700 /var/tmp/toolcell-1000"},
	},
	"a config folder that all may write to": {
		change: func(f *hostFacts) { f.readOnly = []folder{{Rights: []rights{{"/srv/c", 1000, 1000, 0o777}}}} },
		checks: map[string]string{"RC-STATE-OTHERS": "chmod go-w /srv/c"},
	},
	"a state folder of one's own group, in /tmp": {
		change: folderRights(rights{"/tmp/s", 1000, 1000, 0o775}, rights{"/tmp", 0, 0, 0o777 | fs.ModeSticky}),
	},
	"a state folder below what root of the host owns": {
		files:  map[string]string{"proc/self/uid_map": "0 1000 1\n"},
		change: both(asRoot(false), folderRights(rights{"/home/ann/s", 0, 0, 0o755}, rights{"/home/ann", state.UnmappedID, state.UnmappedID, 0o755})),
	},
	"few files": {
		change: func(f *hostFacts) { f.host.HardLimits = map[int]uint64{unix.RLIMIT_NOFILE: 256} },
		checks: map[string]string{"RC-FILES": "echo 'ann hard nofile 4096' | sudo tee /etc/security/limits.d/toolcell.conf"},
	},
	"no /proc": {change: func(f *hostFacts) { f.hostErr = fs.ErrNotExist }, checks: map[string]string{"RC-HOST": "/proc"}},
}

func TestChecksOfHosts(t *testing.T) {
	for name, h := range fakeHosts {
		t.Run(name, func(t *testing.T) {
			found := map[string]bool{}
			for _, c := range h.facts().examine() {
				found[c.Code] = true
				want, listed := h.checks[c.Code]
				if listed == (c.Status == CheckOK) {
					t.Errorf("%s is %s: %s", c.Code, c.Status, c.Text)
				}
				if !strings.Contains(c.Cure, want) || (want == "") != (c.Cure == "") {
					t.Errorf("%s: cure\n%s\nwant\n%s", c.Code, c.Cure, want)
				}
				if c.Status == CheckFatal && c.Cure == "" {
					t.Errorf("%s is fatal and has no cure", c.Code)
				}
				if c.Text == "" || strings.Contains(c.Text, "%!") || strings.Contains(c.Text, "\n") {
					t.Errorf("%s: text %q", c.Code, c.Text)
				}
			}
			for code := range h.checks {
				if !found[code] {
					t.Errorf("no %s", code)
				}
			}
		})
	}
}

// TestRootIsNotToldToUseSudo: nor is a user left without.
func TestRootIsNotToldToUseSudo(t *testing.T) {
	for name, h := range fakeHosts {
		f := h.facts()
		for _, c := range f.examine() {
			outside := strings.HasPrefix(c.Cure, "# on the host")
			if f.host.EUID == 0 && strings.Contains(c.Cure, "sudo") && !outside {
				t.Errorf("%s: %s: %s", name, c.Code, c.Cure)
			}
		}
	}
}

// documented reads the table of docs/doctor.md: code → statuses.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "doctor.md"))
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]string{}
	current, _, _ := strings.Cut(string(b), "Codes of earlier versions")
	for line := range strings.Lines(current) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[1], "RC-") {
			continue
		}
		code := strings.Trim(cells[1], " `")
		if table[code] != nil {
			t.Errorf("%s has two rows", code)
		}
		for s := range strings.SplitSeq(cells[3], ",") {
			table[code] = append(table[code], strings.TrimSpace(s))
		}
	}
	return table
}

// retired are the codes that no check has any more, and that no new one may take.
var retired = map[string]bool{"RC-IDS-PATH": true}

// TestEveryCodeIsDocumented compares docs/doctor.md with the codes that stand
// in the source, and with what the hosts above give: a row has no status that
// cannot be seen, and no status is missing from it.
func TestEveryCodeIsDocumented(t *testing.T) {
	if _, err := os.Stat("doctor.go"); err != nil {
		t.Skip("needs the source") // a test binary was taken elsewhere
	}
	table := documented(t)
	inSource := map[string]bool{}
	for _, pattern := range []string{"*.go", "../../cmd/toolcell/*.go", "../../cmd/toolcell/*/*.go", "../../cmd/toolcell/*/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, m := range regexp.MustCompile(`"(RC-[A-Z0-9-]+)"`).FindAllStringSubmatch(string(b), -1) {
				inSource[m[1]] = true
			}
		}
	}
	for code := range inSource {
		if retired[code] {
			t.Errorf("%s has had another meaning", code)
		}
		if table[code] == nil {
			t.Errorf("%s is not in docs/doctor.md", code)
		}
	}
	seen := map[string][]string{
		"RC-SANDBOX": {CheckOK, CheckDegraded, CheckFatal}, "RC-POLICY": {CheckOK, CheckDegraded}, "RC-POLICY-TOOLS": {CheckDegraded}, "RC-MOUNT": {CheckOK, CheckDegraded}, "RC-SERVER-FOLDER": {CheckDegraded}, "RC-SERVER-SANDBOX": {CheckOK, CheckDegraded}, "RC-SERVER-PINS": {CheckDegraded}, "RC-SERVER-HIDDEN": {CheckDegraded}, "RC-SETTING": {CheckDegraded}, "RC-CONFIG": {CheckDegraded}, "RC-PROJECT-CONFIG": {CheckDegraded},
		"RC-CLIENT": {CheckOK}, "RC-CLIENT-GONE": {CheckDegraded}, "RC-CLIENT-OTHER": {CheckDegraded},
		"RC-IMAGE": {CheckOK, CheckDegraded, CheckFatal}, "RC-REGISTRY": {CheckOK, CheckDegraded, CheckFatal},
	} // cmd/toolcell tests these
	for _, h := range fakeHosts {
		for _, c := range h.facts().examine() {
			if !slices.Contains(seen[c.Code], c.Status) {
				seen[c.Code] = append(seen[c.Code], c.Status)
			}
		}
	}
	for code, statuses := range table {
		if !inSource[code] {
			t.Errorf("docs/doctor.md has %s, which is not in the source", code)
		}
		slices.Sort(statuses)
		slices.Sort(seen[code])
		if !slices.Equal(statuses, seen[code]) {
			t.Errorf("docs/doctor.md: %s is %q, and the hosts give %q", code, statuses, seen[code])
		}
	}
}

// TestStartErrorSaysWhatDoctorSays: the cause of a failed start is the first
// fatal check.
func TestStartErrorSaysWhatDoctorSays(t *testing.T) {
	failed := errors.New("starting the sandbox: permission denied")
	for name, h := range fakeHosts {
		f := h.facts()
		var want Check
		for _, c := range f.examine() {
			if c.Status == CheckFatal || c.Code == "RC-STATE-NOEXEC" {
				want = c
				break
			}
		}
		err := f.explain(failed, "/run/user/1000/toolcell")
		var hint *HintError
		switch {
		case want.Code == "":
			if !errors.Is(err, failed) {
				t.Errorf("%s: a host without fault is blamed: %v", name, err)
			}
		case !errors.As(err, &hint) || hint.Hint != want.Cure || !strings.Contains(err.Error(), want.Text) || !errors.Is(err, failed):
			t.Errorf("%s: got %v, want %s with %q", name, err, want.Code, want.Cure)
		}
	}
	f := fakeHost{}.facts()
	var hint *HintError
	if err := f.explain(&os.PathError{Op: "mkdir", Path: "/x", Err: unix.ENOSPC}, "/run/x"); !errors.As(err, &hint) || !strings.Contains(err.Error(), "RC-STATE-FULL") {
		t.Errorf("a full disk: %v", err)
	}
}

func TestAppArmorPath(t *testing.T) {
	for path, want := range map[string]string{
		"/usr/bin/toolcell":    `"/usr/bin/toolcell"`,
		"/opt/my tools/r":      `"/opt/my tools/r"`,
		`/a*?[b]{c,d}^e"f\g`:   `"/a\*\?\[b\]\{c,d\}\^e\"f\\g"`,
		"/@{HOME}/é":           `"/@\{HOME\}/é"`,
		"/not\xffutf8":         "\"/not\xffutf8\"",
		"/a'$(x)`;&#!|<>()=+%": "\"/a'$(x)`;&#!|<>()=+%\"",
		"/a\nb":                "",
		"/a\x7fb":              "",
	} {
		if got, ok := appArmorPath(path); got != want || ok != (want != "") {
			t.Errorf("%q: got %s, want %s", path, got, want)
		}
	}
}

func TestLookAt(t *testing.T) {
	dir := t.TempDir()
	f := lookAt(filepath.Join(dir, "not", "there"), host.Host{EUID: os.Geteuid()})
	if f.Err != nil || f.At != dir || f.Owner != os.Geteuid() || f.Free <= 0 {
		t.Errorf("got %+v", f)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if len(f.Rights) != 1 || f.Rights[0].Path != dir || f.Rights[0].Owner != os.Geteuid() {
		t.Errorf("rights %+v", f.Rights)
	}
	if all := lookAt(dir, host.Host{}).Rights; len(all) != 2 || all[1].Path != filepath.Dir(dir) {
		t.Errorf("rights %+v", all)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if f := lookAt(file, host.Host{EUID: os.Geteuid()}); f.Err == nil {
		t.Errorf("a file passes for a folder: %+v", f)
	}
	if err := os.Mkdir(filepath.Join(dir, "closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	inContainer := host.Host{UIDs: host.IDMap{Root: 65534, User: 65535}}
	if got := closedTo(filepath.Join(dir, "closed", "a"), inContainer); got != filepath.Join(dir, "closed") {
		t.Errorf("closed to sandboxes: %q", got)
	}
	if got := closedTo(filepath.Join(dir, "open", "a"), inContainer); got != "" {
		t.Errorf("closed to sandboxes: %q", got)
	}
}
