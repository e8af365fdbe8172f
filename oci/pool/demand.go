package pool

import "time"

// demandWindow is how long a number of runs at once is remembered, at least.
const demandWindow = 15 * time.Second

// waitingForks is how many forks wait at least, so that calls that follow each
// other closely need not wait for one: to make it takes longer than a short run.
// Each holds 1.8 MB.
const waitingForks = 4

// countRuns notes that a run begins or ends.
func (o *Pool) countRuns(n int) {
	o.running += n
	if now := time.Now(); now.Sub(o.window) > demandWindow {
		o.peak = [2]int{0, o.peak[0]}
		if now.Sub(o.window) > 2*demandWindow {
			o.peak[1] = 0
		}
		o.window = now
	}
	o.peak[0] = max(o.peak[0], o.running)
}

// target is how many are to wait: as many as lately ran at once, and a few forks
// in any case, unless the host has not even the memory for one more run.
func (o *Pool) target() int {
	if o.closed || o.key == nil || o.p.Limits.Memory > 0 && o.source.MemoryAvailable() < o.p.Limits.Memory {
		return 0
	}
	least := 1
	if o.template != nil {
		least = waitingForks
	}
	return min(max(least, o.peak[0], o.peak[1]), o.options.Max)
}

// hasRoom reports whether one more is to be made. While many run, few wait: all
// of them together are no more than may wait.
func (o *Pool) hasRoom(want int) bool {
	return len(o.ready)+o.making < want && len(o.ready)+o.making+o.running < max(o.options.Max, 2)
}
