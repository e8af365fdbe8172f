package project

import (
	"io/fs"
	"strings"
)

// Hidden are the files and folders that code does not see, at any depth and in any case of
// letters. They are what docs/mounts.md lists.
var Hidden = []string{".env*", ".git/config", "*.pem", "*.key", ".npmrc", ".netrc"}

// isHidden reports whether a name in a folder is one of Hidden; inGit means that the folder is
// .git or below it. Submodules and worktrees have their configuration there, too.
func isHidden(name string, inGit bool) bool {
	name = strings.ToLower(name)
	switch {
	case strings.HasPrefix(name, ".env"), strings.HasSuffix(name, ".pem"), strings.HasSuffix(name, ".key"):
		return true
	case name == ".npmrc", name == ".netrc":
		return true
	}
	return inGit && (name == "config" || name == "config.worktree")
}

// A gitFolder is what tells that a folder is one of Git, whatever its name is: that of a bare
// repository, or one that a file .git names.
type gitFolder struct{ head, objects, refs, config bool }

func (g *gitFolder) look(e fs.DirEntry) {
	switch e.Name() {
	case "HEAD":
		g.head = true
	case "objects":
		g.objects = e.IsDir()
	case "refs":
		g.refs = e.IsDir()
	case "config":
		g.config = e.Type().IsRegular()
	}
}

func (g gitFolder) is() bool { return g.head && g.objects && g.refs && g.config }

// isGit reports whether a folder is one of Git.
func isGit(name string) bool { return strings.EqualFold(name, ".git") }
