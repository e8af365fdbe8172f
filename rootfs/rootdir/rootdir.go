// Package rootdir reads and changes the directory that is, or becomes, the root
// of a sandbox, from outside of it. Names in it resolve as they would inside: "/"
// is the directory, ".." stops there, and absolute symlinks begin there. An
// os.Root is the second line: it opens nothing outside, whatever is wrong here.
//
// An image may have closed its directories to their owner. What this package
// writes gets in all the same, can be read by every user whatever the umask is,
// and never changes a file that another image may share.
package rootdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"unicode/utf8"
)

// Clean converts a name of an image into a path relative to the root. A path cannot lead out
// of the root, as ".." of "/" is "/".
func Clean(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", errors.New("the name has a NUL byte")
	}
	if name == "" {
		return "", errors.New("the name is empty")
	}
	if name = path.Clean("/" + name)[1:]; name == "" {
		return ".", nil
	}
	return name, nil
}

// Unambiguous reports whether a name of an archive, with at most depth parts, is a relative
// path that means the same on every system.
func Unambiguous(name string, depth int) bool {
	if len(name) > MaxPath || strings.Count(name, "/") >= depth || !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\:") || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > MaxName {
			return false
		}
	}
	return true
}

// ReadDir lists a directory of a root. The fs.FS of a root would refuse names that are not
// UTF-8.
func ReadDir(root *os.Root, dir string) ([]fs.DirEntry, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

var errNotDir = errors.New("a directory of its path is a file")

// IsMissing reports whether an error means that a path does not exist or leads through a
// file.
func IsMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir)
}

// Quote quotes a name for an error, cut to a limit.
func Quote(name string) string {
	const limit = 200
	if len(name) > limit {
		return fmt.Sprintf("%q…", name[:limit])
	}
	return fmt.Sprintf("%q", name)
}

// Within reports whether a clean absolute path is dir or below it.
func Within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}
