package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/rootfs/cachedir"
)

// folderErrors are errors of a folder that the user can fix or work around.
var folderErrors = []unix.Errno{
	unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOSPC, unix.EDQUOT, unix.ENOTDIR, unix.EISDIR, unix.EEXIST, unix.ELOOP,
	unix.ENOTEMPTY, unix.ENAMETOOLONG, unix.EIO, unix.ESTALE,
}

// Explain adds the cure to an error that one of the folders causes.
func (d Dirs) Explain(err error) error {
	if foreign, ok := errors.AsType[*cachedir.ForeignError](err); ok {
		return &doctor.HintError{Err: err, Hint: foreign.Cure}
	}
	var hint *doctor.HintError
	known := slices.ContainsFunc(folderErrors, func(e unix.Errno) bool { return errors.Is(err, e) })
	// Where folders cannot be made at all, as in /proc, the kernel says that they are not there.
	if errors.As(err, &hint) || !known && !errors.Is(err, unix.ENOENT) {
		return err
	}
	var path *fs.PathError
	var link *os.LinkError
	file := ""
	switch {
	case errors.As(err, &path) && d.contain(path.Path):
		file = path.Path
	case errors.As(err, &link) && d.contain(link.New):
		file = link.New
	default:
		return err
	}
	if explained := doctor.ExplainFolders(err, d.from(file)...); errors.As(explained, &hint) {
		return explained
	}
	if !known {
		return err
	}
	return &doctor.HintError{Err: err, Hint: "toolcell keeps its files in " + d.String() + ": put right or free what the error names, " +
		"or set MCP_BRIDGE_STATE_DIR to a folder that you can write to"}
}

// contain reports whether a path is in one of the folders, or above one. A
// relative one is in an image that is being unpacked.
func (d Dirs) contain(path string) bool {
	return !filepath.IsAbs(path) || slices.ContainsFunc([]string{d.Cache, d.State, d.Run}, func(dir string) bool {
		return within(path, dir) || within(dir, path)
	})
}

// from returns the folders, and first the one that a file is in: if a disk was full and
// has room again, that is the one to name.
func (d Dirs) from(file string) []string {
	dirs := []string{d.Cache, d.State, d.Run}
	if i := slices.IndexFunc(dirs, func(dir string) bool { return within(file, dir) }); i > 0 {
		dirs[0], dirs[i] = dirs[i], dirs[0]
	}
	return dirs
}

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// String names the folders for the user.
func (d Dirs) String() string {
	if one := filepath.Dir(d.Run); one == filepath.Dir(d.Cache) && one == filepath.Dir(d.State) {
		return one
	}
	return d.Cache + ", " + d.State + " and " + d.Run
}
