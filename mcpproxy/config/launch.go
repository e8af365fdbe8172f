package config

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// Launch returns what a server starts or connects to, as one line for a person,
// without the values of its environment and headers.
func (s Server) Launch() string {
	if s.Transport != Stdio {
		return text.Clip(text.Printable(s.URL, 1024), 1024)
	}
	var words []string
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		words = append(words, text.ShellWord(text.Clip(k, 128))+"=…")
	}
	for _, w := range append([]string{s.Command}, s.Args...) {
		words = append(words, text.ShellWord(w))
	}
	if s.Dir != "" {
		words = append(words, "(in "+text.ShellWord(s.Dir)+")")
	}
	return text.Clip(strings.Join(words, " "), 2048)
}

// StartDir returns the directory that the server starts in; empty is the one this
// process runs in.
func (s Server) StartDir() string { return cmp.Or(s.Dir, s.DefaultDir) }

// LookPath finds the executable for command the way clients written for Node
// do: in the PATH of the entry's own environment if it sets one. Empty means
// there is none. base is the directory this process runs in.
func (s Server) LookPath(base, command string) string {
	dir := s.StartDir()
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		return executable(command)
	}
	path, ok := s.Env["PATH"]
	if !ok {
		path = os.Getenv("PATH")
	}
	for _, p := range filepath.SplitList(path) {
		if !filepath.IsAbs(p) {
			continue // as exec.LookPath: a program from the current directory is an attack
		}
		if found := executable(filepath.Join(p, command)); found != "" {
			return found
		}
	}
	return ""
}

func executable(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return ""
	}
	return path
}
