package mcpproxy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileOptions says what paths and variables in config files stand for.
type fileOptions struct {
	home, dir string                              // the user's home, and the project
	getenv    func(string) string                 // nil is the environment of this process; empty counts as unset
	values    func(file string) map[string]string // what the user set for the inputs of a file; nil is nothing
}

// A location is where a config file may be, and how it is read there.
type location struct {
	path    string
	dialect *dialect
	project bool   // a file of the project: relative paths in it are relative to the project
	bare    bool   // may be one entry, named by the file
	text    string // the file itself, when it is in a variable
}

// variable gives the value of a variable of the environment.
func (o fileOptions) variable(name string) string {
	if o.getenv != nil {
		return o.getenv(name)
	}
	return os.Getenv(name)
}

// resolve turns a pattern of the table into paths: none if it needs a variable
// that is not set.
func (o fileOptions) resolve(pattern string) []string {
	patterns := []string{pattern}
	if pattern == "" {
		return nil
	}
	if rest, ok := strings.CutPrefix(pattern, "EDITOR/"); ok {
		patterns = nil
		for _, e := range editors {
			patterns = append(patterns, e+"/"+rest)
		}
	}
	var paths []string
	for _, p := range patterns {
		x := expander{syntax: braces | defaults, variable: o.variable}
		path, err := x.expand(p)
		if err != nil || len(x.missing) > 0 {
			continue
		}
		paths = append(paths, o.absolute(path))
	}
	return slices.Compact(paths)
}

// absolute resolves a path that the user gave in a setting.
func (o fileOptions) absolute(path string) string {
	path = o.expandHome(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.dir, path)
	}
	return filepath.Clean(path)
}

// expandHome resolves a leading ~/.
func (o fileOptions) expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && o.home != "" {
		return filepath.Join(o.home, rest)
	}
	return path
}

// resolved follows the links in a path, as far as they lead.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// editors are the folders that editors of VS Code's kind keep their users'
// settings in.
var editors = []string{
	"${XDG_CONFIG_HOME:-~/.config}/Code/User",
	"${XDG_CONFIG_HOME:-~/.config}/Code - Insiders/User",
	"${XDG_CONFIG_HOME:-~/.config}/VSCodium/User",
	"${XDG_CONFIG_HOME:-~/.config}/Cursor/User",
	"${XDG_CONFIG_HOME:-~/.config}/Windsurf/User",
	"~/.vscode-server/data/User",
}

// movedFile is where servers of the client go that are moved behind this
// program: a file in the client's own dialect, so that nothing of an entry is
// lost on the way. Empty if the client's servers are in no file of the user.
func (d *dialect) movedFile() string {
	if d.client == "shared" || len(d.user) == 0 {
		return ""
	}
	ext := filepath.Ext(d.user[len(d.user)-1])
	if !slices.Contains([]string{".toml", ".yaml"}, ext) {
		ext = ".json"
	}
	if d.client == "continue" {
		ext = ".yaml"
	}
	return "${XDG_CONFIG_HOME:-~/.config}/toolcell/servers/" + d.client + ext
}

// wrappers start the program that their arguments name.
var wrappers = map[string]bool{
	"env": true, "sh": true, "bash": true, "dash": true, "zsh": true, "nice": true, "nohup": true,
	"setsid": true, "stdbuf": true, "timeout": true, "sudo": true, "exec": true,
}
