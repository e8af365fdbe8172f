package clientconfig

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
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

// packageFlags have a package as their value, and valueFlags another word.
var (
	packageFlags = map[string]bool{"-p": true, "--package": true, "--from": true, "--with": true, "-w": true, "--spec": true}
	valueFlags   = map[string]bool{
		"--python": true, "--directory": true, "--project": true, "--prefix": true, "-C": true, "--cwd": true, "--registry": true,
		"--index": true, "--default-index": true, "--index-url": true, "-i": true, "--extra-index-url": true, "--env-file": true,
		"--with-editable": true, "--with-requirements": true, "--cache": true, "--cache-dir": true, "--userconfig": true,
	}
)

// launchesSelf reports whether arguments of a launcher name this program.
func (o Options) launchesSelf(launcher string, args []string) bool {
	if end := slices.Index(args, "--"); launcher == "mise" && end >= 0 { // before it are tools to install
		args = args[end+1:]
	}
	for i, arg := range args {
		before := ""
		if i > 0 {
			before = args[i-1]
		}
		flag, value, _ := strings.Cut(arg, "=")
		switch name, _, _ := strings.Cut(filepath.Base(arg), "@"); {
		case strings.HasPrefix(arg, "-"):
			if packageFlags[flag] && o.isPackage(value) {
				return true
			}
		case launcherWords[arg] || valueFlags[before]:
		case o.isPackage(arg):
			return true
		case packageFlags[before]:
		default:
			return launchers[name] && o.launchesSelf(name, args[i+1:])
		}
	}
	return false
}

var majorVersion = text.Pattern(`/v[0-9]+$`)

// isPackage reports whether a launcher takes a word for a package of this program: toolcell,
// @any/toolcell@1.2, toolcell[all]>=1, github.com/any/toolcell/cmd/toolcell@latest.
func (o Options) isPackage(word string) bool {
	if at := strings.LastIndexByte(word, '@'); at > 0 {
		word = word[:at]
	}
	name := filepath.Base(majorVersion().ReplaceAllString(word, ""))
	if end := strings.IndexAny(name, "=<>~!["); end >= 0 {
		name = name[:end]
	}
	return name == ProgramName || name == formerName || o.Self != "" && name == filepath.Base(o.Self)
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
	if base := filepath.Base(s.Command); launchers[base] && o.launchesSelf(base, s.Args) {
		return true
	}
	if !Wrappers[filepath.Base(s.Command)] {
		return false
	}
	words := strings.FieldsFunc(strings.Join(s.Args, " "), func(c rune) bool { // sh -c "cd /x && exec toolcell serve"
		return unicode.IsSpace(c) || strings.ContainsRune("\"'`;&|()", c)
	})
	for i, word := range words {
		if base := filepath.Base(word); o.isSelf(s, word) || launchers[base] && o.launchesSelf(base, words[i+1:]) {
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
	return path != "" && state.SameFile(path, o.Self)
}
