package container

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// pin lets a process run on as many processors as cpus asks for, rounded up. next
// counts those that were given out: one sandbox gets other processors than the one
// before.
func pin(pid int, cpus float64, next *atomic.Uint32) error {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return os.NewSyscallError("sched_getaffinity", err)
	}
	want := int(math.Ceil(cpus))
	if want >= all.Count() {
		return nil
	}
	first := int(next.Add(uint32(want))) - want
	return pinThreads(pid, choose(&all, first, want))
}

// choose takes want processors of all, beginning with the one that has the
// number first among them and going around.
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
