package clientconfig

import (
	"path/filepath"
	"slices"
	"strings"
)

// A candidate is where a config file may be.
type candidate struct {
	Location
	rank     rank
	required bool // its absence is a problem
	folder   bool // every config file in it counts
	jsonOnly bool // or every file that is .json
}

// openedFile is a config file with its rank.
type openedFile struct {
	*File
	rank rank
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
func candidates(o Options) []candidate {
	var all []candidate
	seen := map[string]bool{}
	add := func(p candidate) {
		if !seen[p.Path] {
			seen[p.Path] = true
			all = append(all, p)
		}
	}
	if o.Extra != "" {
		add(candidate{Path: o.Files().Absolute(o.Extra), Dialect: &Generic, Bare: true, rank: rankNamed, required: true})
	}
	if o.Dir != "" && !inHome(o) { // at home, the project's files are the user's own
		for _, d := range Dialects {
			for _, pattern := range d.Project {
				add(candidateAt(d, filepath.Join(o.Dir, pattern), rankProject))
			}
		}
	}
	if o.Home == "" {
		return all
	}
	if inHome(o) {
		add(candidateAt(&ClaudeProject, filepath.Join(o.Dir, ".mcp.json"), rankUser))
	}
	add(candidate{Path: filepath.Join(o.Home, "MCPs"), Dialect: &Generic, Bare: true, rank: rankOwn, folder: true})
	for _, d := range Dialects {
		for _, pattern := range append(slices.Clone(d.User), d.MovedFile()) {
			for _, path := range o.Files().Resolve(pattern) {
				add(candidateAt(d, path, rankUser))
			}
		}
		if text := o.Files().Variable(d.Content); d.Content != "" && text != "" {
			add(candidate{Path: "$" + d.Content, Dialect: d, Text: text, rank: rankUser})
		}
	}
	return all
}

// candidateAt makes a candidate of a path of a dialect. One that ends in /* or
// /*.json is a folder.
func candidateAt(d *Dialect, path string, r rank) candidate {
	path, jsonOnly := strings.CutSuffix(path, "/*.json")
	path, folder := strings.CutSuffix(path, "/*")
	folder = folder || jsonOnly
	return candidate{Path: path, Dialect: d, Bare: folder, Project: r == rankProject, rank: r, folder: folder, jsonOnly: jsonOnly}
}

// takes reports whether a file in the folder counts.
func (p candidate) takes(name string) bool {
	return isConfigName(name) && (!p.jsonOnly || filepath.Ext(name) == ".json")
}

// inHome reports whether the project is the user's home directory.
func inHome(o Options) bool {
	return o.Home != "" && o.Dir != "" && ResolveLinks(o.Home) == ResolveLinks(o.Dir)
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
