package container

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/moby/sys/mountinfo"
	"github.com/toolcell/toolcell/oci/spec"
	"golang.org/x/sys/unix"
)

// ErrProjectChanged means that the folder of a project, or something in it that is hidden, was
// replaced since it was found: a sandbox would show what it must not. The caller looks again.
//
// The kernel takes mounts off files that are removed or replaced in another mount namespace
// (detach_mounts), so an editor that saves a file by renaming another uncovers it.
var ErrProjectChanged = errors.New("the project's folder changed while its sandbox was started; run the code again")

// coverRefused reports whether a start may have failed because something that is hidden was
// replaced. libcontainer's child sends its error as text.
func coverRefused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "can't mask")
}

// CheckProject checks from outside that a sandbox that was started in advance shows the project
// of h, and hides what h says. pid is its first process.
func CheckProject(pid int, h spec.Host) error {
	for _, m := range h.Mounts {
		if !m.Project {
			continue
		}
		body, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
		if err != nil {
			return err
		}
		top, _, err := mountsByPlace(body)
		if err == nil {
			err = checkProject(top, m)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkProject reports a mount of a project that shows another folder, or something that is
// hidden; top are a sandbox's mounts by their places.
func checkProject(top map[string]*mountinfo.Info, shown spec.ShownMount) error {
	if !shown.Project {
		return nil
	}
	for _, hidden := range shown.Hidden {
		covered := false
		for at := hidden; !covered && at != shown.Target && at != "/"; at = path.Dir(at) {
			m := top[at]
			covered = m != nil && isCover(m)
		}
		if !covered {
			return fmt.Errorf("%w: %s is not hidden", ErrProjectChanged, hidden)
		}
	}
	m := top[shown.Target]
	if m == nil {
		return fmt.Errorf("%w: it is not there", ErrProjectChanged)
	}
	return isFolder(m, shown.Source)
}

// isFolder reports a mount that is not of this folder of the host: a part of its path became a
// link while it was mounted. Before Linux 5.8 that cannot be seen.
func isFolder(m *mountinfo.Info, dir string) error {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrProjectChanged, err)
	}
	if st.Mask&unix.STATX_MNT_ID == 0 {
		return nil
	}
	on, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.ID != int(st.Mnt_id), false })
	if err != nil {
		return fmt.Errorf("looking for the file system of %q: %w", dir, err)
	}
	if len(on) != 1 {
		return fmt.Errorf("%w: it is on no file system", ErrProjectChanged)
	}
	root := path.Join(on[0].Root, strings.TrimPrefix(dir, strings.TrimSuffix(on[0].Mountpoint, "/")))
	if m.Major != on[0].Major || m.Minor != on[0].Minor || m.Root != root {
		return fmt.Errorf("%w: %q is another folder", ErrProjectChanged, dir)
	}
	return nil
}
