package oci

import (
	"sync/atomic"
	"time"

	"github.com/opencontainers/cgroups/manager"
	"github.com/opencontainers/runc/libcontainer"
)

// watchOOM returns a function that tells, once the sandbox has ended and is
// not yet destroyed, whether its memory limit killed anything. It is told
// whether the first process was killed, and not by us.
func watchOOM(c *libcontainer.Container, g cgroup) func(killed bool) bool {
	if !g.Memory {
		return func(bool) bool { return false }
	}
	if g.Driver != cgroupSystemd {
		return func(bool) bool { return countOOM(c) > 0 }
	}
	// systemd removes a scope as soon as it is empty, and the kernel's count
	// with it: here the kills are noted as they happen. The channel is closed
	// when the last process is gone, which the kernel may tell before it tells
	// of the kill (kernfs_notify keeps no order). But the limit kills the
	// whole sandbox (memory.oom.group), and from inside nobody can kill its
	// first process: who does so from outside is hardly anyone else.
	events, err := c.NotifyOOM()
	if err != nil {
		return func(killed bool) bool { return killed } // it is gone already
	}
	var seen atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range events {
			seen.Store(true)
		}
	}()
	return func(killed bool) bool {
		if killed {
			return true
		}
		select {
		case <-ended:
		case <-time.After(time.Second):
		}
		return seen.Load()
	}
}

// countOOM reads how many processes the sandbox's memory limit has killed.
func countOOM(c *libcontainer.Container) uint64 {
	state, err := c.State()
	if err != nil {
		return 0
	}
	config := c.Config()
	m, err := manager.NewWithPaths(config.Cgroups, state.CgroupPaths)
	if err != nil {
		return 0
	}
	n, err := m.OOMKillCount()
	if err != nil {
		return 0
	}
	return n
}
