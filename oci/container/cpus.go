package container

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pin lets a sandbox run on as many processors as its limit asks for, rounded
// up, where no cgroup counts its time. It is called while the first process
// waits for the signal to continue, so that everything in the sandbox inherits
// it, and seccomp keeps the code from changing it (calls.go). Successive
// sandboxes get different processors.
func (r *Runtime) Pin(pid int, cpus float64) error {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return os.NewSyscallError("sched_getaffinity", err)
	}
	want := int(math.Ceil(cpus))
	if want >= all.Count() {
		return nil
	}
	first := int(r.spread.Add(uint32(want))) - want
	return pinThreads(pid, choose(&all, first, want))
}

// choose picks want processors out of all, beginning with the one at index
// first and wrapping around.
func choose(all *unix.CPUSet, first, want int) *unix.CPUSet {
	var have []int
	for cpu := 0; len(have) < all.Count(); cpu++ {
		if all.IsSet(cpu) {
			have = append(have, cpu)
		}
	}
	var set unix.CPUSet
	for i := range want {
		set.Set(have[(first+i)%len(have)])
	}
	return &set
}

// pinThreads sets the affinity of every thread of a process: whichever of them
// makes the next program or process hands its own on.
func pinThreads(pid int, set *unix.CPUSet) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range threads {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, set); err != nil && err != unix.ESRCH {
			return os.NewSyscallError("sched_setaffinity", err)
		}
	}
	return nil
}
