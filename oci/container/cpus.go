package container

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// pin keeps a process off the first of our processors, if there are others, and lets it run
// on cpus of those, rounded up; 0 means all. next counts processors given out, so that one
// sandbox gets other processors than the one before.
func pin(pid int, cpus float64, next *atomic.Uint32) error {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return os.NewSyscallError("sched_getaffinity", err)
	}
	have := sandboxCPUs(&all)
	want := len(have)
	if cpus > 0 {
		want = min(want, int(math.Ceil(cpus)))
	}
	first := int(next.Add(uint32(want))) - want
	return pinThreads(pid, choose(have, first, want))
}

// sandboxCPUs returns the processors of a set that sandboxes may use: all but the
// first, which is the same for every sandbox, so that it stays free.
func sandboxCPUs(all *unix.CPUSet) (have []int) {
	for cpu := 0; len(have) < all.Count(); cpu++ {
		if all.IsSet(cpu) {
			have = append(have, cpu)
		}
	}
	if len(have) > 1 {
		have = have[1:]
	}
	return have
}

// choose takes want of the processors, beginning at index first and wrapping around.
func choose(have []int, first, want int) *unix.CPUSet {
	var set unix.CPUSet
	for i := range want {
		set.Set(have[(first+i)%len(have)])
	}
	return &set
}

// pinThreads sets the affinity of every thread of a process: programs and processes inherit
// that of the thread which starts them.
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
