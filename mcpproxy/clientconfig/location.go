package clientconfig

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Location is where a config file may be, and how it is read there.
type Location struct {
	Path    string
	Dialect *Dialect
	Bare    bool   // may be one entry, named by the file
	Text    string // the file itself, when it is in a variable

	rank     rank
	required bool // its absence is a problem
	folder   bool // every config file in it counts
	jsonOnly bool // or every file that is .json
}

// OfProject is the location of a project's file.
func (p Location) OfProject() Location {
	p.rank = rankProject
	return p
}

// A rank orders files: the lower one wins.
type rank int

const (
	rankNamed   rank = iota // TOOLCELL_SERVERS_CONFIG
	rankProject             // needs trust, as it came with the project; relative paths in it are relative to that
	rankOwn                 // ~/MCPs
	rankUser                // of the user's clients
)

// Variable gives the value of a variable of the environment.
func (o Options) Variable(name string) string {
	if o.Getenv != nil {
		return o.Getenv(name)
	}
	return os.Getenv(name)
}

// Resolve turns a pattern of the table into paths: none if it needs a variable
// that is not set.
func (o Options) Resolve(pattern string) []string {
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
		x := expander{from: &File{options: o}, syntax: braces | defaults}
		path, err := x.expand(p)
		if err != nil || len(x.missing) > 0 {
			continue
		}
		// A relative folder would lead into the project, which needs trust; the XDG Base Directory
		// Specification has it ignored, too. A variable alone is a file that the user named.
		if filepath.IsAbs(o.expandHome(path)) || strings.HasSuffix(p, "}") {
			paths = append(paths, o.Absolute(path))
		}
	}
	return slices.Compact(paths)
}

// Absolute resolves a path that the user gave in a setting.
func (o Options) Absolute(path string) string {
	path = o.expandHome(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	return filepath.Clean(path)
}

// expandHome resolves a leading ~/.
func (o Options) expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && o.Home != "" {
		return filepath.Join(o.Home, rest)
	}
	return path
}

// resolveLinks follows the links in a path, as far as they lead.
func resolveLinks(path string) string {
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

// MovedFile is the file for servers that are moved from the client's file to this program. It
// is in the client's dialect, so that entries stay whole. It is empty if the client has no
// file of the user.
func (d *Dialect) MovedFile() string {
	if d.Client == "shared" || len(d.User) == 0 {
		return ""
	}
	ext := filepath.Ext(d.User[len(d.User)-1])
	if !slices.Contains([]string{".toml", ".yaml"}, ext) {
		ext = ".json"
	}
	if d.Client == "continue" {
		ext = ".yaml"
	}
	return "${XDG_CONFIG_HOME:-~/.config}/toolcell/servers/" + cmp.Or(d.moved, d.Client) + ext
}

// Wrappers start the program that their arguments name.
var Wrappers = map[string]bool{
	"env": true, "sh": true, "bash": true, "dash": true, "zsh": true, "nice": true, "nohup": true,
	"setsid": true, "stdbuf": true, "timeout": true, "sudo": true, "exec": true,
}
