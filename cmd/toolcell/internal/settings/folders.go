package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/program"
	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/oci/homes"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"golang.org/x/sys/unix"
)

// Dirs are the folders that the program works in.
type Dirs struct {
	Cache string // images: can be made again
	State string // data that cannot be recreated: saved tools, files of runs
	Run   string // state of running processes
}

// FindDirs follows the XDG Base Directory Specification, unless one folder is
// named for everything.
func FindDirs(one string) (Dirs, error) {
	if one != "" {
		abs, err := filepath.Abs(one)
		if err != nil {
			return Dirs{}, fmt.Errorf("finding the state folder: %w", err)
		}
		return Dirs{filepath.Join(abs, "cache"), filepath.Join(abs, "state"), filepath.Join(abs, "run")}, nil
	}
	home, err := os.UserHomeDir()
	if err != nil && (os.Getenv("XDG_CACHE_HOME") == "" || os.Getenv("XDG_STATE_HOME") == "") {
		return Dirs{}, console.Invalidf("there is no HOME; set it, or TOOLCELL_STATE_DIR")
	}
	d := Dirs{
		Cache: filepath.Join(xdg("XDG_CACHE_HOME", filepath.Join(home, ".cache")), "toolcell"),
		State: filepath.Join(xdg("XDG_STATE_HOME", filepath.Join(home, ".local", "state")), "toolcell"),
	}
	// Without a runtime folder, which some MCP clients do not pass on, the
	// state folder is used; files that survive a reboot are swept.
	d.Run = filepath.Join(d.State, "run")
	if dir := xdg("XDG_RUNTIME_DIR", ""); dir != "" {
		d.Run = filepath.Join(dir, "toolcell")
	}
	return d, nil
}

// RunDirs returns the folders in which running processes of this user may have their
// state. MCP clients may not pass on XDG_RUNTIME_DIR, and shells may lack it.
func (s Settings) RunDirs() []string {
	d := s.Dirs
	dirs := []string{d.Run}
	if s.StateDir != "" {
		return dirs
	}
	for _, dir := range []string{filepath.Join(d.State, "run"), fmt.Sprintf("/run/user/%d/toolcell", os.Getuid())} {
		if dir != d.Run {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// xdg reads one of the specification's variables: "All paths set in these
// environment variables must be absolute", others count as unset.
func xdg(name, otherwise string) string {
	if v := os.Getenv(name); filepath.IsAbs(v) {
		return v
	}
	return otherwise
}

// Homes is where MCP servers in sandboxes have their home folders.
func (d Dirs) Homes() string { return filepath.Join(d.State, "servers") }

// Tools is where saved tools are kept.
func (d Dirs) Tools() string { return filepath.Join(d.State, "tools") }

// Catalogs is where the tools of the user's servers are kept from process to process.
func (d Dirs) Catalogs() string { return filepath.Join(d.Cache, "servers") }

// Logins is where logins to servers are kept.
func (d Dirs) Logins() string { return filepath.Join(d.State, "logins") }

// Pins is where the definitions of tools are pinned.
func (d Dirs) Pins() string { return filepath.Join(d.State, "pins") }

// Rights are the entries of servers that may have what the policy gives them.
func (d Dirs) Rights() string { return filepath.Join(d.State, "rights") }

// Versions is the folder with the versions of packages that a server gets.
func (d Dirs) Versions(server string) string {
	return filepath.Join(d.State, "versions", homes.FolderOf(server))
}

// PolicyFile returns the policy file, and whether the user named it. It is empty if no folder
// for one is known.
func (s Settings) PolicyFile() (file string, named bool) {
	if s.Policy != "" {
		if abs, err := filepath.Abs(s.Policy); err == nil {
			return abs, true
		}
		return s.Policy, true
	}
	dir := ConfigDir()
	if dir == "" {
		return "", false
	}
	return filepath.Join(dir, "policy.toml"), false
}

// MustExist refuses a setting that names a file which does not exist.
func (s Settings) MustExist(name, file string) error {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.Refuse(name, fmt.Errorf("%s does not exist", file))
}

// ConfigDir returns the folder of the user's own files, which toolcell only reads but for config.toml,
// or "" if there is no home for it.
func ConfigDir() string {
	home, err := os.UserHomeDir()
	config := xdg("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	if !filepath.IsAbs(config) || err != nil && os.Getenv("XDG_CONFIG_HOME") == "" {
		return ""
	}
	return filepath.Join(config, "toolcell")
}

// OwnFiles returns the folders and files whose content decides what code may do. A program that
// can write there can give code more rights.
func (s Settings) OwnFiles() []string {
	own := s.ownFolders()
	policy, _ := s.PolicyFile()
	for _, file := range []string{policy, UserFile()} { // which may be links to other folders
		if file != "" {
			own = append(own, file)
		}
	}
	return own
}

// ownFolders are those of OwnFiles that nothing but toolcell's files are in.
func (s Settings) ownFolders() []string {
	own := []string{s.Dirs.Cache, s.Dirs.State, s.Dirs.Run}
	for _, dir := range []string{ConfigDir(), program.Folder()} {
		if dir != "" {
			own = append(own, dir)
		}
	}
	return own
}

// InTheWay returns the first of the own files that is in path, or that path is in,
// or "". Symbolic links are resolved.
func InTheWay(path string, own []string) string {
	path = resolved(path)
	for _, file := range own {
		if file = resolved(file); within(path, file) || within(file, path) {
			return file
		}
	}
	return ""
}

// LeaveRemovedFolder changes to the root if the working directory has been
// removed: sandboxes and servers started in it would fail.
func LeaveRemovedFolder() {
	if _, err := unix.Getcwd(make([]byte, unix.PathMax)); errors.Is(err, unix.ENOENT) {
		_ = os.Chdir("/") // always exists
	}
}

// standardPath are the folders in which Linux distributions install programs.
var standardPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// CompletePath appends to PATH the standard folders that are not in it. MCP clients
// may start toolcell with a short PATH or none. libcontainer looks for newuidmap in
// PATH, and without it all sandboxes would have the user's own ID. What PATH has
// already comes first, and servers inherit the result.
func CompletePath() {
	_ = os.Setenv("PATH", completePath(os.Getenv("PATH"))) // the error is that of a name or value that is not legal
}

func completePath(path string) string {
	var dirs []string
	if path != "" { // an empty element would be the current folder
		dirs = strings.Split(path, ":")
	}
	for _, dir := range standardPath {
		if !slices.Contains(dirs, dir) && !slices.Contains(dirs, dir+"/") {
			dirs = append(dirs, dir)
		}
	}
	return strings.Join(dirs, ":")
}

// folderErrors are errors of a folder that the user can fix or work around.
var folderErrors = []unix.Errno{
	unix.EACCES, unix.EPERM, unix.EROFS, unix.ENOSPC, unix.EDQUOT, unix.ENOTDIR, unix.EISDIR, unix.EEXIST, unix.ELOOP,
	unix.ENOTEMPTY, unix.ENAMETOOLONG, unix.EIO, unix.ESTALE,
}

// Explain adds the cure to an error that one of the folders causes.
func (d Dirs) Explain(err error) error {
	if untrusted, ok := errors.AsType[*cachedir.UntrustedError](err); ok {
		return &doctor.HintError{Err: err, Hint: untrusted.Cure}
	}
	var hint *doctor.HintError
	known := slices.ContainsFunc(folderErrors, func(e unix.Errno) bool { return errors.Is(err, e) })
	// Where folders cannot be made at all, as in /proc, the kernel says that they are not there.
	if errors.As(err, &hint) || !known && !errors.Is(err, unix.ENOENT) {
		return err
	}
	var path *fs.PathError
	var link *os.LinkError
	var file string
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
		"or set TOOLCELL_STATE_DIR to a folder that you can write to"}
}

// contain reports whether a path is in one of the folders, or above one. A relative path is in
// an image that is being unpacked.
func (d Dirs) contain(path string) bool {
	return !filepath.IsAbs(path) || slices.ContainsFunc([]string{d.Cache, d.State, d.Run}, func(dir string) bool {
		return within(path, dir) || within(dir, path)
	})
}

// from returns the folders, the one with file first: if a disk was full and has room again, the
// error should name that folder.
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
