package clientconfig

import (
	"path/filepath"
	"slices"
	"strings"
)

// candidates lists where config files may be, in order of precedence: the file that the user
// named, the project's, ~/MCPs, and those of the user's clients in the order of
// the table of dialects.
func candidates(o Options) []Location {
	var all []Location
	seen := map[string]bool{}
	add := func(p Location) {
		if !seen[p.Path] {
			seen[p.Path] = true
			all = append(all, p)
		}
	}
	if o.Extra != "" {
		add(Location{Path: o.named(), Dialect: &Generic, Bare: true, rank: rankNamed, required: true})
	}
	if o.Dir != "" && !inHome(o) { // at home, the project's files are the user's own
		for _, d := range Dialects {
			for _, pattern := range d.Project {
				add(locationAt(d, filepath.Join(o.Dir, pattern), rankProject))
			}
		}
	}
	if !filepath.IsAbs(o.Home) { // a relative one would lead into the project
		return all
	}
	if inHome(o) {
		add(locationAt(&ClaudeProject, filepath.Join(o.Dir, ".mcp.json"), rankUser))
	}
	add(Location{Path: filepath.Join(o.Home, "MCPs"), Dialect: &Generic, Bare: true, rank: rankOwn, folder: true})
	for _, d := range Dialects {
		for _, pattern := range append(slices.Clone(d.User), d.MovedFile()) {
			for _, path := range o.Resolve(pattern) {
				add(locationAt(d, path, rankUser))
			}
		}
		if text := o.Variable(d.Content); d.Content != "" && text != "" {
			add(Location{Path: "$" + d.Content, Dialect: d, Text: text, rank: rankUser})
		}
	}
	return all
}

// named is the file that the user named, if there is one.
func (o Options) named() string {
	if o.Extra == "" {
		return ""
	}
	return o.Absolute(o.Extra)
}

// locationAt makes a location of a path of a dialect. One that ends in /* or
// /*.json is a folder.
func locationAt(d *Dialect, path string, r rank) Location {
	path, jsonOnly := strings.CutSuffix(path, "/*.json")
	path, folder := strings.CutSuffix(path, "/*")
	folder = folder || jsonOnly
	return Location{Path: path, Dialect: d, Bare: folder, rank: r, folder: folder, jsonOnly: jsonOnly}
}

// takes reports whether a file in the folder counts.
func (p Location) takes(name string) bool {
	return isConfigName(name) && (!p.jsonOnly || filepath.Ext(name) == ".json")
}

// inHome reports whether the project is the user's home directory.
func inHome(o Options) bool {
	return o.Home != "" && o.Dir != "" && resolveLinks(o.Home) == resolveLinks(o.Dir)
}

// ProjectOf finds the project directory that a config file belongs to by its
// place in it, such as /src/x for /src/x/.cursor/mcp.json. Empty means that
// it is no such file.
func ProjectOf(file string) string {
	for dir := filepath.Dir(file); ; dir = filepath.Dir(dir) {
		for _, p := range candidates(Options{Dir: dir}) {
			if p.Path == file || p.folder && p.Path == filepath.Dir(file) && p.takes(filepath.Base(file)) {
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
