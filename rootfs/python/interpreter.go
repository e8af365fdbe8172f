package python

import (
	"context"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/rootfs/rootdir"
)

const (
	defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	maxPathDirs = 100
	newestMinor = 99 // the newest to look for
)

// OldestMinor is N of 3.N, the oldest Python that the runner supports.
const OldestMinor = 10

// numbered returns the names of interpreters that are not too old, from the newest on.
func numbered() (names []string) {
	for n := newestMinor; n >= OldestMinor; n-- {
		names = append(names, "python3."+strconv.Itoa(n))
	}
	return names
}

// errNoPython names images that work, since a user who sees it has probably chosen a base
// image.
var errNoPython = fmt.Errorf("the image has no Python interpreter (3.%d or newer) in its PATH; images such as python:3.14-slim or python:3.14-alpine have one", OldestMinor)

// Find returns the absolute path of the image's interpreter, as a shell in it would find it.
//
// It looks up names and lists no folders: a folder of an image may have a million files named
// python3.N.
func Find(ctx context.Context, root *os.Root, env []string) (string, error) {
	dirs := searchPath(env)
	find := func(name string) (string, error) {
		for _, dir := range dirs {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			if isPython(root, path.Join(dir, name)) {
				return path.Join(dir, name), nil
			}
		}
		return "", nil
	}
	for _, name := range []string{"python3", "python"} {
		if found, err := find(name); found != "" || err != nil {
			return found, err
		}
	}
	dirs = slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := rootdir.Resolve(root, dir)
		return err != nil
	})
	for _, name := range numbered() {
		if found, err := find(name); found != "" || err != nil {
			return found, err
		}
	}
	return "", errNoPython
}

func searchPath(env []string) []string {
	list := defaultPath
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok && value != "" {
			list = value
		}
	}
	var dirs []string
	for dir := range strings.SplitSeq(list, ":") {
		if path.IsAbs(dir) && len(dirs) < maxPathDirs {
			dirs = append(dirs, path.Clean(dir))
		}
	}
	return dirs
}

// isPython reports whether a path leads to an executable file that is not too old a Python.
func isPython(root *os.Root, file string) bool {
	real, err := rootdir.ResolveFile(root, file)
	if err != nil {
		return false
	}
	info, err := root.Lstat(real)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return false
	}
	return !tooOld(path.Base(real))
}

// versionInName finds the version in names such as python2.7, python3.13t, pypy3.10 and
// platform-python3.6.
var versionInName = text.Pattern(`^(?:platform-)?(?:python|pypy)(\d)(?:\.(\d+))?`)

// tooOld reports whether the name of an interpreter's file says that it is too old.
func tooOld(name string) bool {
	version := versionInName().FindStringSubmatch(name)
	if version == nil {
		return false
	}
	n, err := strconv.Atoi(version[2])
	return version[1] < "3" || version[1] == "3" && err == nil && n < OldestMinor
}
