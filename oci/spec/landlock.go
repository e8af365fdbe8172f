package spec

import (
	"path"
	"slices"
	"strings"
)

// ownTop are the names at the top of a root that are not the image's files. The first four
// are the sandbox's own; it has no /sys.
var ownTop = []string{"dev", "proc", "tmp", "workspace", "sys"}

// IsOwnTop reports whether a name at the top of a root directory is not the image's file.
func IsOwnTop(name string) bool { return slices.Contains(ownTop, name) }

// Readable returns the paths below which Landlock lets code read and execute: what the
// specification puts into the sandbox. pid1.c (landlock) adds the code's own folders. Other
// mounts, and files reached through a descriptor of the host, cannot be read.
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
		return []string{"/"} // a file of the image that cannot be passed to pid 1 (pid1.c, allow_list)
	}
	return Uppermost(all)
}

// Uppermost returns the clean paths that are not below others, each once.
func Uppermost(paths []string) (out []string) {
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		if !slices.ContainsFunc(out, func(above string) bool { return strings.HasPrefix(p, strings.TrimSuffix(above, "/")+"/") }) {
			out = append(out, p)
		}
	}
	return out
}
