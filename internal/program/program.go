// Package program knows where this program is, how it was installed, and by which path
// clients and profiles of AppArmor name it, so that it is still there tomorrow.
package program

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/state"
)

// A Program is an executable file of toolcell.
type Program struct {
	Path   string // without symbolic links
	Origin Origin
}

// This returns this program.
func This() Program {
	return at(Self())
}

// Self returns the kernel's name of this program, which has no symbolic links; "" if it is
// not known.
func Self() string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	return exe
}

// at returns the program at a path without symbolic links.
func at(path string) Program {
	if path == StablePath() && path != "" {
		return Program{path, readOrigin()}
	}
	return Program{path, originOf(path)}
}

// Folder returns the folder that toolcell keeps its own program in, "" without a home.
func Folder() string {
	data := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(data) { // "All paths […] must be absolute", others count as unset
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return ""
		}
		data = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(data, "toolcell")
}

// StablePath returns where toolcell install puts the program if it runs from a place
// that does not last, such as a cache; "" without a home.
func StablePath() string {
	dir := Folder()
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "bin", "toolcell")
}

// Started returns the executable that clients start once toolcell is installed: this one, or
// its copy at StablePath. AppArmor knows programs by it.
func (p Program) Started() string {
	if path := StablePath(); path != "" && p.Lasting() == "" {
		return path
	}
	return p.Path
}

// Lasting returns a path of the program that survives cleaned caches and upgrades, "" if
// it has none. A name in PATH is preferred to what it links to, which packages replace.
func (p Program) Lasting() string {
	if p.Path == StablePath() {
		return p.Path
	}
	if p.Origin.passing {
		return ""
	}
	name, err := exec.LookPath("toolcell")
	if err == nil && filepath.IsAbs(name) && state.SameFile(name, p.Path) {
		return name
	}
	if p.Origin.stays || stays(p.Path) {
		return p.Path
	}
	return ""
}

// stays reports whether a path is in a folder where programs are put to stay.
func stays(path string) bool {
	if strings.HasPrefix(path, "/opt/") {
		return true
	}
	dirs := []string{"/usr/bin", "/usr/local/bin", "/bin"}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, ".local", "bin"), filepath.Join(home, "bin"))
	}
	return slices.Contains(append(dirs, goFolders()...), filepath.Dir(path))
}

// goFolders are where go install puts programs.
func goFolders() []string {
	if dir := os.Getenv("GOBIN"); dir != "" {
		return []string{dir}
	}
	if path := os.Getenv("GOPATH"); path != "" {
		first, _, _ := strings.Cut(path, ":")
		return []string{filepath.Join(first, "bin")}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return []string{filepath.Join(home, "go", "bin")}
}
