package sandboxed

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci/spec"
)

// mountsOf returns the folders and files that a section names. They have to be there. Links are
// followed, but for those that code or a server could have made: it would choose what is shown at the
// next start.
func (l *Launcher) mountsOf(box *policy.Sandbox) (all []spec.Mount, err error) {
	var written []string
	for _, dir := range l.o.Written() {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			written = append(written, real)
		}
	}
	for _, m := range box.Mounts {
		real, err := followed(m.Source, written)
		if err != nil {
			return nil, fmt.Errorf("%s of mounts in %s of %s: %w", m.Source, box.Section, box.File, err)
		}
		all = append(all, spec.Mount{Source: real, Target: m.Target, Writable: m.Write})
	}
	return all, nil
}

// maxLinks bounds the links on one path, as the kernel does (path_resolution(7)).
const maxLinks = 40

// followed returns where an absolute path leads, and follows no link in folders that others write to, or
// below them.
func followed(name string, written []string) (string, error) {
	at, rest := "/", strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			return "", errors.Unwrap(err)
		case info.Mode().Type() != os.ModeSymlink:
			at = next
			continue
		case slices.ContainsFunc(written, func(dir string) bool { return isBelow(at, dir) }):
			return "", fmt.Errorf("%q is a link in a folder that a sandbox may write to, and may have been made there; name the folder that is meant", text.Bound(next, 200))
		}
		to, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return "", fmt.Errorf("%q is one link too many", text.Bound(next, 200))
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return at, nil
}

// isBelow reports whether a clean path is dir or below it.
func isBelow(name, dir string) bool {
	rest, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rest)
}
