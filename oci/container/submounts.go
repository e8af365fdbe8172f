package container

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"github.com/toolcell/toolcell/oci/spec"
)

// mountsBelow returns the uppermost mount points below a folder of the host.
func mountsBelow(dir string) ([]string, error) {
	inside := strings.TrimSuffix(dir, "/") + "/"
	all, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		return !strings.HasPrefix(m.Mountpoint, inside) || m.Mountpoint == inside, false
	})
	if err != nil {
		return nil, fmt.Errorf("looking for file systems below %q: %w", dir, err)
	}
	var points []string
	for _, m := range all {
		points = append(points, m.Mountpoint)
	}
	return spec.Uppermost(points), nil
}

// findSubmounts returns the mounts with the mount points below their sources. It is called
// at every start: mounts come and go.
func findSubmounts(mounts []spec.ShownMount) (out []spec.ShownMount, err error) {
	for _, m := range mounts {
		below, err := mountsBelow(m.Source)
		if err != nil {
			return nil, err
		}
		m.Below = nil
		for _, point := range below {
			m.Below = append(m.Below, path.Join(m.Target, strings.TrimPrefix(point, m.Source)))
		}
		out = append(out, m)
	}
	return out, nil
}

// A TreeError means that a folder of the host cannot be shown read-only, since file systems
// are mounted below it.
type TreeError struct {
	Dir    string
	Points []string
}

func (e *TreeError) Error() string {
	return fmt.Sprintf("file systems are mounted below %s (%s), and this kernel cannot show them read-only: Linux 5.12 can",
		e.Dir, strings.Join(e.Points, ", "))
}

// Advice returns the command that helps.
func (e *TreeError) Advice() string {
	return "# use an image, which needs nothing of " + e.Dir + ":\ntoolcell settings set image python:3.14-slim"
}

// checkTrees reports a folder of the host in the root that the kernel would refuse to show
// (spec.readOnlyTree); the kernel's own error would not help the user. Real root's binds
// leave submounts out.
func checkTrees(binds []spec.Bind, h spec.Host) error {
	if h.Recursive || h.Admin {
		return nil
	}
	for _, b := range binds {
		points, err := mountsBelow(b.Source)
		if err == nil && len(points) > 0 {
			err = &TreeError{b.Source, points}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errNewMount means that a file system was mounted while a sandbox started. The next try
// takes it into account.
var errNewMount = errors.New("a file system was mounted below a folder that code is shown at this moment")

// bindRefused reports whether a start may have failed because of such a mount.
func bindRefused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "error mounting") && strings.Contains(err.Error(), "invalid argument")
}

// checkCovered checks from outside the mounts of a sandbox that has not run code yet: below
// the folders that it is shown, everything must be covered, including what was mounted since
// findSubmounts. Later nothing can be added: its mounts are private.
func checkCovered(pid int, mounts []spec.ShownMount) error {
	if len(mounts) == 0 {
		return nil
	}
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return err
	}
	return uncovered(body, mounts)
}

func uncovered(info []byte, mounts []spec.ShownMount) error {
	top, count, err := mountsByPlace(info)
	if err != nil {
		return err
	}
	for _, shown := range mounts {
		var points []string
		for point := range top {
			if strings.HasPrefix(point, shown.Target+"/") {
				points = append(points, point)
			}
		}
		for _, point := range spec.Uppermost(points) {
			below := slices.Contains(shown.Below, point) && count[point] >= 2
			if !below && !slices.Contains(shown.Hidden, point) || !isCover(top[point]) {
				return fmt.Errorf("%w: %s", errNewMount, point)
			}
		}
		if err := checkProject(top, shown); err != nil {
			return err
		}
	}
	return nil
}

// isCover reports whether a mount is one that covers a folder or file.
func isCover(m *mountinfo.Info) bool {
	return m.FSType == "tmpfs" && slices.Contains(strings.Split(m.Options, ","), "ro") || m.Root == "/null"
}

// mountsByPlace returns what was mounted last at each place, and how many mounts are there.
func mountsByPlace(info []byte) (top map[string]*mountinfo.Info, count map[string]int, err error) {
	all, err := mountinfo.GetMountsFromReader(bytes.NewReader(info), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the mounts of a sandbox: %w", err)
	}
	top, count = map[string]*mountinfo.Info{}, map[string]int{}
	for _, m := range all {
		top[m.Mountpoint] = m
		count[m.Mountpoint]++
	}
	return top, count, nil
}
