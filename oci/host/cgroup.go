package host

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/cgroups/systemd"
)

// The ways in which a sandbox gets its cgroup.
const (
	CgroupNone    = ""        // none: we keep the limits by other means
	CgroupFS      = "fs"      // a directory made by us
	CgroupSystemd = "systemd" // a transient scope of the user's systemd manager
)

// CPUPeriod is the length of the window in which CPU time is counted, in
// microseconds; 100 ms is the kernel's default.
const CPUPeriod = 100_000

// A Cgroup says which limits can be set on this host, and through what.
type Cgroup struct {
	Driver            string
	V2                bool
	Memory, PIDs, CPU bool
	Swap              bool   // swap can be limited too
	Instance          string // folder of this server's own cgroups, "" if they are in none
	Why               string // why Driver is none, for the user
}

// Freezes reports whether the processes in a part of a sandbox's cgroup can be frozen.
// Processes in a frozen cgroup of version 1 could not be killed.
func (c Cgroup) Freezes() bool { return c.V2 && c.Driver != CgroupNone }

// Path names the sandbox's cgroup in the form that the driver wants: relative
// for cgroupfs, so that it stays under the limits that hold for ourselves, or
// "slice:prefix:name" for systemd.
func (c Cgroup) Path(id string) string {
	switch c.Driver {
	case CgroupFS:
		return path.Join("toolcell", c.Instance, id)
	case CgroupSystemd:
		return "user.slice:toolcell:" + id
	}
	return ""
}

// detectCgroup tests whether cgroups accept limits by making one: mount flags, ownership and
// missing controllers can each prevent it, so only a trial is reliable.
func detectCgroup(euid int) Cgroup {
	v2 := cgroups.IsCgroup2UnifiedMode()
	switch {
	case euid == 0:
		return tryCgroupFS(Cgroup{Driver: CgroupFS, V2: v2})
	case !v2:
		return Cgroup{Why: "this host has cgroup v1, which an ordinary user cannot use"}
	}
	c, err := userSystemd(euid)
	if err == nil {
		return c
	}
	if fs := tryCgroupFS(Cgroup{Driver: CgroupFS, V2: true}); fs.Driver != CgroupNone {
		return fs
	}
	return Cgroup{V2: true, Why: err.Error()}
}

// WarmCgroupMoves moves this process to its own cgroup. A first move waits for an RCU grace
// period of 5 to 15 ms, but moves within the next 10 ms do not (cgroup_threadgroup_rwsem,
// kernel/cgroup/cgroup.c). So this wait overlaps the preparations of a start. Without write
// access, the start is only slower.
func WarmCgroupMoves() {
	own, err := cgroups.ParseCgroupFile("/proc/self/cgroup")
	if err != nil {
		return
	}
	at, hierarchy := "/sys/fs/cgroup", ""
	if !cgroups.IsCgroup2UnifiedMode() {
		at, hierarchy = "/sys/fs/cgroup/pids", "pids"
	}
	path, known := own[hierarchy]
	if !known {
		return // a hierarchy that we are not in
	}
	dir := filepath.Join(at, path)
	procs, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer procs.Close()
	_, _ = fmt.Fprint(procs, os.Getpid())
}

// userSystemd returns the controllers that the user's systemd manager can delegate. Some MCP
// clients do not pass on XDG_RUNTIME_DIR, without which its bus is not found.
func userSystemd(euid int) (Cgroup, error) {
	if os.Getenv("XDG_RUNTIME_DIR") == "" {
		dir := fmt.Sprintf("/run/user/%d", euid)
		if _, err := os.Stat(dir + "/bus"); err == nil {
			os.Setenv("XDG_RUNTIME_DIR", dir)
		}
	}
	if !systemd.IsRunningSystemd() {
		return Cgroup{}, errors.New("no cgroup is delegated to this user, and systemd is not running")
	}
	if _, err := systemd.DetectUserDbusSessionBusAddress(); err != nil {
		return Cgroup{}, errors.New("the user's systemd manager was not found (no XDG_RUNTIME_DIR, no bus)")
	}
	dir := fmt.Sprintf("/sys/fs/cgroup/user.slice/user-%d.slice/user@%d.service", euid, euid)
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return Cgroup{}, fmt.Errorf("no cgroup is delegated to this user: %w", err)
	}
	has := func(name string) bool { return slices.Contains(strings.Fields(string(controllers)), name) }
	c := Cgroup{Driver: CgroupSystemd, V2: true, Swap: true, Memory: has("memory"), PIDs: has("pids"), CPU: has("cpu")}
	if !c.Memory && !c.PIDs {
		return Cgroup{}, errors.New("systemd delegates neither memory nor pids to this user")
	}
	return c, nil
}

// tryCgroupFS makes a cgroup with small limits and removes it again.
func tryCgroupFS(c Cgroup) Cgroup {
	const memory, pids, quota = 64 << 20, 16, 50_000
	limit := int64(pids)
	try := func(r cgroups.Resources) error {
		r.SkipDevices = true
		m, err := manager.New(&cgroups.Cgroup{Path: c.Path(fmt.Sprintf("probe-%d", os.Getpid())), Resources: &r})
		if err != nil {
			return err
		}
		defer func() { _ = m.Destroy() }() // an empty folder may stay
		if err := m.Apply(-1); err != nil {
			return err
		}
		return m.Set(&r)
	}
	all := cgroups.Resources{Memory: memory, MemorySwap: memory, PidsLimit: &limit, CpuQuota: quota, CpuPeriod: CPUPeriod}
	if try(all) == nil {
		// Most hosts with any controller have all, and each try takes as long as a run.
		c.Memory, c.PIDs, c.CPU, c.Swap = true, true, true, true
		return c
	}
	err := try(cgroups.Resources{Memory: memory})
	c.Memory = err == nil
	c.PIDs = try(cgroups.Resources{PidsLimit: &limit}) == nil
	c.CPU = try(cgroups.Resources{CpuQuota: quota, CpuPeriod: CPUPeriod}) == nil
	c.Swap = c.Memory && try(cgroups.Resources{Memory: memory, MemorySwap: memory}) == nil
	if !c.Memory && !c.PIDs && !c.CPU {
		if at, ok := errors.AsType[*os.PathError](err); ok {
			err = at.Err // the name of the probe's file does not help
		}
		return Cgroup{V2: c.V2, Why: fmt.Sprintf("no cgroup can be made here (%v)", err)}
	}
	return c
}
