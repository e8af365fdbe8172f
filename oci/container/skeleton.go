package container

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// RoomFor returns the root with a mount point for each mount. If the image lacks some, the
// root becomes a skeleton: directories with the mount points, into which everything else of
// the image is bound. The image itself is shared and stays unchanged. A root that has all
// mount points is returned as it is.
//
// The skeleton is in the state folder of this server, and is removed with it.
func (r *Runtime) RoomFor(root spec.Root, h spec.Host) (spec.Root, error) {
	plan, err := planSkeleton(root, h.Mounts)
	if err != nil || len(plan.make) == 0 {
		return root, err
	}
	dir, err := r.StateDir()
	if err != nil {
		return root, fmt.Errorf("making the sandbox state folder again: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.EUID == 0 && !h.Admin && makeSearchable(stagingDir) == nil {
		dir = stagingDir // see procFiles
	}
	at := filepath.Join(dir, "root-"+plan.hash())
	if _, err := os.Stat(at); err != nil {
		if err := plan.write(dir, at); err != nil {
			return root, fmt.Errorf("making places for mounts in the sandbox: %w", err)
		}
	}
	return spec.Root{Dir: at, Binds: append(plan.binds, root.Binds...)}, nil
}

// maxMirrored bounds how many binds show the rest of the image.
const maxMirrored = 256

// A skeleton is the plan of a skeleton.
type skeleton struct {
	root  string
	make  []string          // mount points that the image lacks
	dirs  []string          // below the root, parents first
	files []string          // empty, to be mounted on
	links map[string]string // as the image has them
	binds []spec.Bind
}

// planSkeleton plans it. Mount points on the sandbox's own file systems are made in those.
func planSkeleton(root spec.Root, mounts []spec.ShownMount) (*skeleton, error) {
	s := &skeleton{root: root.Dir, links: map[string]string{}}
	opened := map[string]bool{}
	for _, m := range mounts {
		if spec.OnTmpfs(m.Target) || !s.lacks(m.Target) {
			continue
		}
		s.make = append(s.make, m.Target)
		for dir := path.Dir(m.Target); ; dir = path.Dir(dir) {
			opened[dir] = true
			if dir == "/" {
				break
			}
		}
	}
	if len(s.make) == 0 {
		return s, nil
	}
	// What is mounted later must not be covered: these are the skeleton's own directories,
	// all the way down.
	opened["/run"] = true
	for _, dir := range slices.Sorted(maps.Keys(opened)) {
		if err := s.mirror(dir, opened); err != nil {
			return nil, err
		}
	}
	for _, m := range mounts {
		if slices.Contains(s.make, m.Target) {
			if m.Dir {
				s.dirs = append(s.dirs, m.Target)
			} else {
				s.files = append(s.files, m.Target)
			}
		}
	}
	return s, nil
}

// lacks reports whether the image has nothing at a path. Links on the way were refused
// before (settings.CheckRoom).
func (s *skeleton) lacks(target string) bool {
	_, err := os.Lstat(filepath.Join(s.root, target))
	return errors.Is(err, fs.ErrNotExist)
}

// mirror adds a directory to the skeleton, with what the image has in it.
func (s *skeleton) mirror(dir string, opened map[string]bool) error {
	s.dirs = append(s.dirs, dir)
	entries, err := os.ReadDir(filepath.Join(s.root, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a parent of a mount point, which the image lacks as well
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		from := filepath.Join(s.root, name)
		switch {
		case opened[name]: // mirrored itself
		case e.Type()&fs.ModeSymlink != 0:
			if s.links[name], err = os.Readlink(from); err != nil {
				return err
			}
		case e.IsDir() && (dir == "/" && spec.IsOwnTop(e.Name()) || name == spec.OwnDir):
			s.dirs = append(s.dirs, name) // the sandbox's own is mounted on it
		case e.IsDir():
			s.dirs = append(s.dirs, name)
			s.binds = append(s.binds, spec.Bind{Source: from, Target: name})
		case e.Type().IsRegular():
			s.files = append(s.files, name)
			s.binds = append(s.binds, spec.Bind{Source: from, Target: name})
		}
		if len(s.binds) > maxMirrored {
			return fmt.Errorf("making a place in %s, which has too many files in the image; choose another place, such as /data", dir)
		}
	}
	return nil
}

// hash names the skeleton by its content.
func (s *skeleton) hash() string {
	var st unix.Stat_t
	_ = unix.Stat(s.root, &st) // the start says what is wrong with it
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d:%d %q %q %q %q", s.root, st.Dev, st.Ino, s.dirs, s.files, s.links, s.binds))
	return fmt.Sprintf("%x", sum[:8])
}

// write creates it at a path in dir, whole or not at all.
func (s *skeleton) write(dir, at string) (err error) {
	tmp, err := os.MkdirTemp(dir, ".root-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // gone by then, unless something failed
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range s.dirs {
		if name = strings.TrimPrefix(name, "/"); name == "" {
			name = "."
		} else if err := root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := root.Chmod(name, 0o755); err != nil { // whatever our umask is
			return err
		}
	}
	for _, name := range s.files {
		f, err := root.OpenFile(name[1:], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Chmod(0o644), f.Close()); err != nil {
			return err
		}
	}
	for name, to := range s.links {
		if err := root.Symlink(to, name[1:]); err != nil {
			return err
		}
	}
	err = os.Rename(tmp, at)
	if _, there := os.Stat(at); err != nil && there == nil {
		return nil // another server of a container's root was faster
	}
	return err
}

// maxTop is how many names Landlock gets rules for. Images have some twenty.
const maxTop = 40

// TopNames returns the names at the top of a root directory that contain files, which is
// all that code needs to read (spec.Readable). A symbolic link leads to one of the others,
// and an empty directory may be a mount point.
//
// If there are too many, or one cannot be passed to pid 1 (pid1.c, allow_list), it returns
// ".", all of the root.
func TopNames(root string) ([]string, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("reading the root directory: %w", err)
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if spec.IsOwnTop(name) || !e.Type().IsRegular() && (!e.IsDir() || isEmpty(filepath.Join(root, name))) {
			continue
		}
		if strings.Contains(name, ":") || len(names) == maxTop {
			return []string{"."}, nil
		}
		names = append(names, name)
	}
	return names, nil
}

// HasResolver reports whether a root has a /etc/resolv.conf that another file can cover. A link
// is left as it is: what it leads to may not be there.
func HasResolver(root spec.Root) bool {
	const file = "/etc/resolv.conf"
	at := filepath.Join(root.Dir, file)
	for _, b := range root.Binds {
		if inside, ok := strings.CutPrefix(file, path.Clean(b.Target)); ok && (inside == "" || inside[0] == '/') {
			at = filepath.Join(b.Source, inside)
		}
	}
	info, err := os.Lstat(at)
	return err == nil && info.Mode().IsRegular()
}

// isEmpty reports whether a directory is known to be empty.
func isEmpty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}
