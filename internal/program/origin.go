package program

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
)

// A Registry has the releases of an Origin.
type Registry string

// The registries.
const (
	PyPI   Registry = "PyPI"
	NPM    Registry = "npm"
	GitHub Registry = "GitHub"
)

// An Origin is how a program was installed.
type Origin struct {
	Name     string   `json:"name"`             // such as uvx
	Registry Registry `json:"registry"`         // that has its releases
	Upgrade  string   `json:"upgrade"`          // what to type for a newer version; may have comment lines
	Remove   string   `json:"remove,omitempty"` // what to type to remove it; empty if it is not known

	passing bool // it may go without the user removing it
	stays   bool // where it is, also through upgrades
}

// Runner returns the program by which the user starts toolcell, which is not in PATH then: uvx
// or npx, or "".
func (o Origin) Runner() string {
	if o.Name == "uvx" || o.Name == "npx" {
		return o.Name
	}
	return ""
}

const releases = "https://github.com/toolcell/toolcell/releases/latest"

// originOf finds out how the program at a path was installed, by what is around it: the file
// itself is the same everywhere.
func originOf(path string) Origin {
	for _, find := range []func(string) (Origin, bool){npmPackage, pythonPackage, systemPackage, goInstall, tarball} {
		if o, ok := find(path); ok {
			return o
		}
	}
	prefix := filepath.Dir(filepath.Dir(path))
	o := Origin{Name: "source", Registry: GitHub, Upgrade: "# in a clone:\ngit pull && make && ", Remove: "rm " + text.ShellWord(path)}
	switch {
	case stays(path):
		o.Upgrade += "make install PREFIX=" + text.ShellWord(prefix)
	case exists(filepath.Join(prefix, ".git")):
		o.Upgrade = "cd " + text.ShellWord(prefix) + " && git pull && make && bin/toolcell upgrade"
	default:
		o.Upgrade += "bin/toolcell upgrade"
	}
	return o
}

// npmPackage knows node_modules/@toolcell/PLATFORM/bin/toolcell. npx has it in a folder of
// its cache, and a global one goes with its Node.js where there are several.
func npmPackage(path string) (Origin, bool) {
	project, _, ok := strings.Cut(path, "/node_modules/")
	if !ok {
		return Origin{}, false
	}
	o := Origin{Name: "npm", Registry: NPM, passing: true}
	switch {
	case filepath.Base(filepath.Dir(project)) == "_npx":
		dir := text.ShellWord(project)
		// npm 9 starts what is in this folder, also once there is a newer version. Later ones look
		// (libnpmexec, missingFromTree).
		o.Name, o.Upgrade, o.Remove = "npx", "rm -rf "+dir+" && npx toolcell upgrade", "rm -r "+dir
	case filepath.Base(project) == "lib":
		o.Upgrade, o.Remove = "npm install -g toolcell@latest && toolcell upgrade", "npm uninstall -g toolcell"
	default:
		dir := text.ShellWord(project)
		o.Upgrade = fmt.Sprintf("npm install --prefix %s toolcell@latest && npm exec --prefix %s toolcell upgrade", dir, dir)
		o.Remove = fmt.Sprintf("npm uninstall --prefix %s toolcell", dir)
	}
	return o, true
}

// pythonPackage knows PREFIX/bin/toolcell with its metadata in PREFIX/lib
// (https://packaging.python.org/en/latest/specifications/recording-installed-packages/).
// Debian's pip has it in dist-packages.
func pythonPackage(path string) (Origin, bool) {
	prefix := filepath.Dir(filepath.Dir(path))
	found, err := fs.Glob(os.DirFS(filepath.Join(prefix, "lib")), "python3*/*-packages/toolcell-*.dist-info")
	if err != nil || len(found) == 0 {
		return Origin{}, false
	}
	has := func(name string) bool { return exists(filepath.Join(prefix, name)) }
	o := Origin{Registry: PyPI}
	switch inVenv := has("pyvenv.cfg"); {
	case has("uv-receipt.toml"):
		o.Name, o.Upgrade, o.Remove = "uv tool", "uv tool upgrade toolcell", "uv tool uninstall toolcell"
		o.stays = true
	case has("pipx_metadata.json"):
		o.Name, o.Upgrade, o.Remove = "pipx", "pipx upgrade toolcell", "pipx uninstall toolcell"
		o.stays = true
	case inUVsCache(prefix):
		o.Name, o.Upgrade, o.Remove, o.passing = "uvx", "uvx toolcell@latest upgrade", "uv cache clean toolcell", true
	case inVenv && !has("bin/pip"): // made by uv
		python := text.ShellWord(filepath.Join(prefix, "bin", "python"))
		o.Name, o.passing = "uv pip", true
		o.Upgrade = fmt.Sprintf("uv pip install --python %s --upgrade toolcell && %s upgrade", python, text.ShellWord(path))
		o.Remove = fmt.Sprintf("uv pip uninstall --python %s toolcell", python)
	case inVenv:
		pip := text.ShellWord(filepath.Join(prefix, "bin", "pip"))
		o.Name, o.passing = "pip", true
		o.Upgrade = fmt.Sprintf("%s install --upgrade toolcell && %s upgrade", pip, text.ShellWord(path))
		o.Remove = fmt.Sprintf("%s uninstall toolcell", pip)
	default:
		flag := ""
		if python, _, _ := strings.Cut(found[0], "/"); externallyManaged(python, filepath.Join(prefix, "lib"), "/usr/lib") {
			flag = "--break-system-packages "
		}
		o.Name, o.Upgrade, o.Remove = "pip", "pip install "+flag+"--upgrade toolcell", "pip uninstall "+flag+"toolcell"
	}
	return o, true
}

// externallyManaged reports whether pip changes nothing outside of virtual environments unless a flag
// says so (https://packaging.python.org/en/latest/specifications/externally-managed-environments/).
// The first folder that has the standard library of this Python is where the mark would be.
func externallyManaged(python string, folders ...string) bool {
	for _, dir := range folders {
		if exists(filepath.Join(dir, python, "os.py")) {
			return exists(filepath.Join(dir, python, "EXTERNALLY-MANAGED"))
		}
	}
	return false
}

// inUVsCache reports whether an environment is one that uvx keeps in its cache. The folders
// have had these names since uv 0.1, each with a version.
func inUVsCache(prefix string) bool {
	parent := filepath.Base(filepath.Dir(prefix))
	return strings.HasPrefix(parent, "archive-v") || strings.HasPrefix(parent, "environments-v") || strings.HasPrefix(parent, "builds-v")
}

// systemPackage knows a program that dpkg or rpm has installed.
func systemPackage(path string) (Origin, bool) {
	if path != "/usr/bin/toolcell" {
		return Origin{}, false
	}
	for _, p := range []struct{ name, knows, upgrade, remove string }{
		{"a .deb", "/var/lib/dpkg/info/toolcell.list", "sudo apt install ./toolcell_*.deb", "sudo apt purge toolcell"},
		{"an .rpm", "/usr/lib/sysimage/rpm", "sudo dnf install ./toolcell-*.rpm", "sudo dnf remove toolcell"},
		{"an .rpm", "/var/lib/rpm", "sudo dnf install ./toolcell-*.rpm", "sudo dnf remove toolcell"},
	} {
		if exists(p.knows) {
			return Origin{Name: p.name, Registry: GitHub, Upgrade: "# with the package from " + releases + ":\n" + p.upgrade, Remove: p.remove}, true
		}
	}
	return Origin{}, false
}

func goInstall(path string) (Origin, bool) {
	for _, dir := range goFolders() {
		if filepath.Dir(path) == dir {
			return Origin{
				Name: "go install", Registry: GitHub,
				Upgrade: "CGO_ENABLED=1 go install -tags seccomp,netgo,osusergo,runc_nocriu,urfave_cli_no_docs github.com/toolcell/toolcell/cmd/toolcell@latest",
				Remove:  "rm " + text.ShellWord(path),
			}, true
		}
	}
	return Origin{}, false
}

// tarball knows PREFIX/bin/toolcell with PREFIX/share/doc/toolcell, which make install does not make.
func tarball(path string) (Origin, bool) {
	prefix := filepath.Dir(filepath.Dir(path))
	if !exists(filepath.Join(prefix, "share", "doc", "toolcell")) {
		return Origin{}, false
	}
	// Tarballs of older versions may be beside the newest one.
	newest := `"$(ls -v toolcell-*-linux-` + runtime.GOARCH + `.tar.gz | tail -n 1)"`
	o := Origin{
		Name: "a tarball", Registry: GitHub,
		Upgrade: "# where the tarball from " + releases + " is:\ntar -C " + text.ShellWord(prefix) + " --strip-components=1 -xzf " + newest,
		Remove:  "rm " + text.ShellWord(path),
	}
	if !stays(path) {
		o.Upgrade += " && " + text.ShellWord(path) + " upgrade"
	}
	return o, true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// originFile says where the program at the stable path was copied from.
func originFile() string { return filepath.Join(Folder(), "origin.json") }

// maxOrigin bounds originFile, which has three short commands.
const maxOrigin = 64 << 10

// readOrigin returns the origin of the program at the stable path.
func readOrigin() Origin {
	var o Origin
	data, err := state.ReadRegular(originFile(), maxOrigin)
	if err != nil || json.Unmarshal(data, &o) != nil || o.Name == "" {
		return Origin{Name: "a copy", Registry: GitHub, Upgrade: "# with the new program, of whatever kind:\ntoolcell upgrade"}
	}
	return o
}
