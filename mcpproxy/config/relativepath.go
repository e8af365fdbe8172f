package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// CheckPaths refuses an entry that names a path relative to the directory it is
// started in, and not that directory. It is for servers that do not start in the
// project: there the path would lead to nothing, or to something else, as "." leads
// to all of the user's home.
func (s Server) CheckPaths() error {
	if s.Transport != Stdio || s.Dir != "" {
		return nil
	}
	word := s.relativeWord()
	if word == "" {
		return nil
	}
	return errors.New(word + ` is a path relative to the project, but servers of your own files start in your home directory; ` +
		`write the full path, or set "cwd" in the entry`)
}

// relativeWord describes the first part of the entry that is a relative path, or
// returns "". It does not quote arguments and values, as they may be secrets.
func (s Server) relativeWord() string {
	if strings.Contains(s.Command, "/") && !filepath.IsAbs(s.Command) {
		return `its "command"`
	}
	for i, arg := range s.Args {
		_, value, joined := strings.Cut(arg, "=") // --root=./data
		if isRelative(arg) || joined && isRelative(value) {
			return fmt.Sprintf("its argument %d", i+1)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		if isRelative(s.Env[k]) {
			return fmt.Sprintf("its variable %q", k)
		}
	}
	return ""
}

// isRelative reports whether a word can only be a relative path. A bare name can be
// anything.
func isRelative(word string) bool {
	return word == "." || word == ".." || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "../")
}
