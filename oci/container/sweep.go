package container

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/runc/libcontainer"
	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/oci/host"
	"golang.org/x/sys/unix"
)

// lockName is the file in an instance's folder that the instance keeps locked
// while it runs. The kernel releases the lock however the process ends.
const lockName = "lock"

// lockStateDir creates the folder of all instances and locks it: an instance that is
// starting and has no lock yet would look as if it were gone.
func lockStateDir(dir string) (unlock func(), err error) {
	return state.Lock(context.Background(), filepath.Join(dir, lockName), state.Exclusive)
}

// openInstance creates a folder for this instance in dir and locks it, after sweeping the
// folders of instances that are gone.
func openInstance(dir string) (own string, lock *os.File, err error) {
	unlock, err := lockStateDir(dir)
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	sweep(dir)
	own, err = os.MkdirTemp(dir, "instance-")
	if err != nil {
		return "", nil, err
	}
	lock, err = state.TryLock(filepath.Join(own, lockName), os.O_CREATE, state.Exclusive)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(own))
	}
	return own, lock, nil
}

// StateDir returns the folder of this instance. It creates the folder and its lock again if
// they are gone: a cleaner of temporary files may have removed them.
func (r *Runtime) StateDir() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if state.InPlace(r.lock) {
		return r.dir, nil
	}
	unlock, err := lockStateDir(filepath.Dir(r.dir))
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return "", err
	}
	lock, err := state.TryLock(filepath.Join(r.dir, lockName), os.O_CREATE, state.Exclusive)
	if err != nil {
		return "", err
	}
	r.lock.Close()
	r.lock = lock
	return r.dir, nil
}

// stateName is the file in which libcontainer keeps the state of a sandbox.
const stateName = "state.json"

// NoteCgroup records in the state folder dir which cgroup a sandbox will have, before it
// exists. libcontainer writes its state only when the sandbox has nearly started: a server
// killed before that would leave a cgroup without a record. The note names no namespaces, so
// that destroying the sandbox kills everything in its cgroup (libcontainer, state_linux.go,
// destroy).
func NoteCgroup(dir, id string, config *cgroups.Cgroup, paths map[string]string) error {
	note := *config
	note.Resources = &cgroups.Resources{SkipDevices: true}
	body, err := json.Marshal(libcontainer.State{ID: id, InitProcessPid: -1, Config: configs.Config{Cgroups: &note}, CgroupPaths: paths})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, id), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, id, stateName), body, 0o600)
}

// HasNote reports whether NoteCgroup's record of a sandbox is in dir: a cleaner of temporary
// files may have removed it.
func HasNote(dir, id string) bool {
	_, err := os.Lstat(filepath.Join(dir, id, stateName))
	return err == nil
}

// sweep ends and removes the sandboxes of instances that no longer run. If it
// cannot remove one now, the next start tries again.
func sweep(dir string) {
	instances, _ := state.Match(dir, "instance-*")
	for _, inst := range instances {
		// A symlink could point outside this folder.
		if info, err := os.Lstat(inst); err != nil || !info.IsDir() {
			continue
		}
		lock, err := state.TryLock(filepath.Join(inst, lockName), 0, state.Exclusive)
		switch {
		case err == nil:
			sweepInstance(inst)
			lock.Close()
		case errors.Is(err, os.ErrNotExist):
			// The instance is just ending, or was killed before it had a lock.
			// The folder is removed only if it is empty.
			os.Remove(inst)
		}
		// Otherwise the instance is running.
	}
}

func sweepInstance(inst string) {
	entries, err := os.ReadDir(inst)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !readable(filepath.Join(inst, e.Name(), stateName)) {
			continue // it had no process yet, or its state is lost
		}
		// Load compares the recorded start time of the process, so that an unrelated
		// process with the same pid is not killed.
		c, err := libcontainer.Load(inst, e.Name())
		if err != nil || destroy(c) != nil {
			return
		}
	}
	os.RemoveAll(inst)
}

// sweepProbes removes the cgroups of servers that were killed while probing the
// host (cgroup.go, host.tryCgroupFS).
func sweepProbes(g host.Cgroup) {
	if g.Driver != host.CgroupFS {
		return
	}
	m, err := manager.New(&cgroups.Cgroup{Path: g.Path("probe"), Resources: &cgroups.Resources{}})
	if err != nil {
		return
	}
	for _, path := range m.GetPaths() {
		probes, _ := state.Match(filepath.Dir(path), filepath.Base(path)+"-*")
		for _, probe := range probes {
			pid, err := strconv.Atoi(strings.TrimPrefix(probe, path+"-"))
			if err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
				os.Remove(probe)
			}
		}
	}
}

// readable reports whether a file has a usable state. A full disk or a crash of the host can
// leave anything, and libcontainer trusts its content.
func readable(file string) bool {
	body, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	var state libcontainer.State
	return json.Unmarshal(body, &state) == nil && state.Config.Cgroups != nil
}
