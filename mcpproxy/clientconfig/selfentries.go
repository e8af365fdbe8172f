package clientconfig

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// pythonOriginal is the program this one replaces; its old entry in a config
// would start a second bridge that offers the same servers again.
const pythonOriginal = "mcp-server-code-execution-mode"

// ProgramName is what packages of this program are called.
const ProgramName = "toolcell"

// formerName is what this program was called before its first release. An entry
// that still starts it would be a second bridge over the same servers.
const formerName = "runcell"

// launchers start a package that their arguments name, and fetch it if they
// must. Their words before the package are commands of their own.
var launchers = map[string]bool{
	"npx": true, "bunx": true, "pnpx": true, "uvx": true, "npm": true, "pnpm": true, "yarn": true, "bun": true, "uv": true, "pipx": true, "go": true,
	"mise": true,
}

var launcherWords = map[string]bool{"exec": true, "x": true, "dlx": true, "run": true, "tool": true, "--": true}

// launchesSelf reports whether arguments of a launcher name this program:
// toolcell, @any/toolcell@1.2, toolcell==1.2, github.com/any/toolcell/cmd/toolcell@latest.
func (o Options) launchesSelf(args []string) bool {
	for i, arg := range args {
		if launcherWords[arg] || strings.HasPrefix(arg, "-") {
			continue
		}
		name := filepath.Base(arg)
		if at := strings.LastIndexByte(name, '@'); at > 0 {
			name = name[:at]
		}
		name, _, _ = strings.Cut(name, "==")
		if name == ProgramName || name == formerName || o.Self != "" && name == filepath.Base(o.Self) {
			return true
		}
		if i > 0 && (args[i-1] == "-p" || args[i-1] == "--package" || args[i-1] == "--from" || args[i-1] == "--with" || args[i-1] == "--python") {
			continue // the value of a flag
		}
		return false
	}
	return false
}

// StartsSelf reports whether s starts this program, directly or through a
// common wrapper. Such a server in the catalog would start itself without end.
func (o Options) StartsSelf(s config.Server) bool {
	if StartsOriginal(s) {
		return true
	}
	if o.isSelf(s, s.Command) {
		return true
	}
	if launchers[filepath.Base(s.Command)] && o.launchesSelf(s.Args) {
		return true
	}
	if !Wrappers[filepath.Base(s.Command)] {
		return false
	}
	words := strings.Fields(strings.Join(s.Args, " ")) // sh -c "exec toolcell serve"
	for i, word := range words {
		word = strings.Trim(word, `"';`)
		if o.isSelf(s, word) || launchers[filepath.Base(word)] && o.launchesSelf(words[i+1:]) {
			return true
		}
	}
	return false
}

// StartsOriginal reports whether an entry starts the Python program that toolcell
// replaces.
func StartsOriginal(s config.Server) bool {
	return slices.ContainsFunc(append([]string{s.Command}, s.Args...), func(w string) bool {
		return strings.Contains(strings.ReplaceAll(w, "_", "-"), pythonOriginal) // its file has underscores
	})
}

func (o Options) isSelf(s config.Server, command string) bool {
	if base := filepath.Base(command); base == ProgramName || base == formerName {
		return true // wherever it is installed, also another version of it
	}
	if o.Self == "" || command == "" {
		return false
	}
	path := s.LookPath(o.Dir, command)
	return path != "" && SameFile(path, o.Self)
}

// SameFile reports whether two paths lead to the same file, by links or otherwise.
func SameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}
