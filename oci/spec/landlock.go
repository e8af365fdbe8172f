package spec

import (
	"path"
	"slices"
	"strings"
)

// ownTop are the names at the top of a root that stand for something other than
// the image's files. The first four are the sandbox's own; it has no /sys.
var ownTop = []string{"dev", "proc", "tmp", "workspace", "sys"}

// IsOwnTop reports whether a name at the top of a root directory stands for
// something other than the image's files.
func IsOwnTop(name string) bool { return slices.Contains(ownTop, name) }

// Readable returns the places in which Landlock lets code read and execute: what the
// specification puts into the sandbox. The code's own folders are added by pid1.c
// (landlock). A mount that is in none of them, and all that can be reached from a
// descriptor of the host's, cannot be read.
func Readable(p Process, h Host) []string {
	all := []string{OwnDir}
	for _, name := range p.Top {
		all = append(all, path.Join("/", name))
	}
	for _, b := range p.Root.Binds {
		all = append(all, path.Clean(b.Target))
	}
	for _, m := range h.Mounts {
		if !OnTmpfs(m.Target) {
			all = append(all, path.Clean(m.Target))
		}
	}
	if slices.ContainsFunc(all, func(place string) bool { return strings.Contains(place, ":") }) {
		return []string{"/"} // an image's file, which cannot be told to pid 1 (pid1.c, allow_list)
	}
	return Uppermost(all)
}

// Uppermost leaves out the clean paths that are below others, and all but one of the same.
func Uppermost(paths []string) (out []string) {
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		if !slices.ContainsFunc(out, func(above string) bool { return strings.HasPrefix(p, strings.TrimSuffix(above, "/")+"/") }) {
			out = append(out, p)
		}
	}
	return out
}
