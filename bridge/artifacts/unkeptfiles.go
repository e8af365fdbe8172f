package artifacts

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/text"
)

// NoteLost adds a note if the code has left files in /workspace that end with it,
// since they are not in /workspace/out. What libraries keep there for themselves does
// not count: hidden files, bytecode, caches.
func (c *Collector) NoteLost(w *Workspace) {
	if c.store.o.Dir == "" {
		return // what is in out ends, too
	}
	root, err := openBelow(w.dir, ".", unix.O_DIRECTORY)
	if err != nil {
		return
	}
	defer root.Close()
	s := scan{leaveOut: func(path string) bool {
		return path == outDir || isByTheWay(path) || slices.Contains(w.mounted, "/workspace/"+path)
	}}
	s.readFolder(root, "", 0)
	if len(s.found) == 0 {
		return
	}
	slices.SortFunc(s.found, byDepthAndName)
	first, more := shownPath(s.found[0].path), len(s.found)-1
	switch {
	case more == 0:
		c.addNote("%s in /workspace is gone; write to /workspace/out to keep files", first)
	case s.tooMany:
		c.addNote("%s and at least %s in /workspace are gone; write to /workspace/out to keep files", first, moreFiles(more))
	default:
		c.addNote("%s and %s in /workspace are gone; write to /workspace/out to keep files", first, moreFiles(more))
	}
}

func moreFiles(n int) string { return text.Plural(n, "more file") }

// byDepthAndName puts the files first that a reader looks for first.
func byDepthAndName(a, b outFile) int {
	if d := strings.Count(a.path, "/") - strings.Count(b.path, "/"); d != 0 {
		return d
	}
	return strings.Compare(a.path, b.path)
}

// isByTheWay reports whether a file or folder, by its path, is one that libraries
// make for themselves.
func isByTheWay(path string) bool {
	name := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
	switch {
	case strings.HasPrefix(name, "."), strings.HasSuffix(name, ".pyc"):
		return true
	case name == "__pycache__", name == "fontconfig", name == "cache", name == "caches":
		return true
	}
	return strings.HasSuffix(name, "_cache") || strings.HasSuffix(name, "-cache")
}
