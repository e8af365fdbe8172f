package mcpproxy

import (
	"path/filepath"
	"slices"
	"strings"
)

// A candidate is where a config file may be.
type candidate struct {
	path     string
	dialect  *dialect
	rank     rank
	required bool   // its absence is a problem
	bare     bool   // may be one entry, named by the file
	folder   bool   // every config file in it counts
	text     string // the file itself, when it is in a variable
}

// A rank is how near to this program a file is: the lower wins.
type rank int

const (
	rankNamed   rank = iota // MCP_SERVERS_CONFIG
	rankProject             // needs trust, as it came with the project
	rankOwn                 // ~/MCPs
	rankUser                // of the user's clients
)

// candidates lists all of them in order of precedence: the file that the user
// named, the project's, ~/MCPs, and those of the user's clients in the order of
// the table of dialects.
func candidates(o DiscoverOptions) []candidate {
	var all []candidate
	seen := map[string]bool{}
	add := func(p candidate) {
		if !seen[p.path] {
			seen[p.path] = true
			all = append(all, p)
		}
	}
	if o.Extra != "" {
		add(candidate{path: absolute(o, o.Extra), dialect: &generic, rank: rankNamed, required: true, bare: true})
	}
	if o.Dir != "" && !o.inHome() { // at home, the project's files are the user's own
		for _, d := range dialects {
			for _, pattern := range d.project {
				add(d.at(filepath.Join(o.Dir, pattern), rankProject))
			}
		}
	}
	if o.Home == "" {
		return all
	}
	if o.inHome() {
		add(claudeProject.at(filepath.Join(o.Dir, ".mcp.json"), rankUser))
	}
	add(candidate{path: filepath.Join(o.Home, "MCPs"), dialect: &generic, rank: rankOwn, folder: true, bare: true})
	for _, d := range dialects {
		for _, pattern := range append(slices.Clone(d.user), d.movedFile()) {
			for _, path := range o.resolve(pattern) {
				add(d.at(path, rankUser))
			}
		}
		if text := o.getenv(d.content); d.content != "" && text != "" {
			add(candidate{path: "$" + d.content, dialect: d, rank: rankUser, text: text})
		}
	}
	return all
}

// at makes a place of a path of this dialect. One that ends in /* is a folder.
func (d *dialect) at(path string, r rank) candidate {
	path, folder := strings.CutSuffix(path, "/*")
	return candidate{path: path, dialect: d, rank: r, folder: folder, bare: folder}
}

// inHome reports whether the project is the user's home directory.
func (o DiscoverOptions) inHome() bool {
	return o.Home != "" && o.Dir != "" && resolved(o.Home) == resolved(o.Dir)
}

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

// resolve turns a pattern of the table into paths: none if it needs a variable
// that is not set.
func (o DiscoverOptions) resolve(pattern string) []string {
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
		x := expander{syntax: braces | defaults, variable: o.getenv}
		path, err := x.expand(p)
		if err != nil || len(x.missing) > 0 {
			continue
		}
		paths = append(paths, absolute(o, path))
	}
	return slices.Compact(paths)
}

// absolute resolves a path that the user gave in a setting.
func absolute(o DiscoverOptions, path string) string {
	path = expandHome(o, path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	return filepath.Clean(path)
}

func expandHome(o DiscoverOptions, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && o.Home != "" {
		return filepath.Join(o.Home, rest)
	}
	return path
}

// ProjectOf finds the project directory that a config file belongs to by its
// place in it, such as /src/x for /src/x/.cursor/mcp.json. Empty means that
// it is no such file.
func ProjectOf(file string) string {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		for _, p := range candidates(DiscoverOptions{Dir: dir}) {
			if p.path == file || p.folder && p.path == filepath.Dir(file) {
				return dir
			}
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// isConfigName reports whether a file in a folder of config files is one.
func isConfigName(name string) bool {
	switch filepath.Ext(name) {
	case ".json", ".jsonc", ".toml", ".yaml", ".yml":
		return !strings.HasPrefix(name, ".")
	}
	return false
}
