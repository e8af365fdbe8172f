package spec

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// maxLinks bounds the links on one path, as the kernel does (path_resolution(7)).
const maxLinks = 40

// A PlantedLinkError is a link on the way to a source that a sandbox may have made.
type PlantedLinkError struct{ Path string }

func (e *PlantedLinkError) Error() string {
	return fmt.Sprintf("%q is a link in a folder that a sandbox may write to, and may have been made there; name the folder that is meant", text.Bound(e.Path, 200))
}

// FollowLinks returns where an absolute path leads on this host. It follows no link in folders that
// sandboxes write to, or below them: code or a server would choose with it what is shown to the next one.
func FollowLinks(name string, written []string) (string, error) {
	var real []string
	for _, dir := range written {
		if dir, err := filepath.EvalSymlinks(dir); err == nil {
			real = append(real, dir)
		}
	}
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
		case slices.ContainsFunc(real, func(dir string) bool { return isBelow(at, dir) }):
			return "", &PlantedLinkError{next}
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
