package pool

import "time"

// demandWindow is how long a number of runs at once is remembered, at least.
const demandWindow = 15 * time.Second

// waitingForks is the least number of waiting forks, so that calls in quick
// succession need not wait: making a fork takes longer than a short run. Each
// holds 3.3 MB.
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

// target is how many should wait: as many as recently ran at once, and always a
// few forks, unless the host lacks memory for even one more run.
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

// hasRoom reports whether to start another. Running and waiting sandboxes
// together stay within Max.
func (o *Pool) hasRoom(want int) bool {
	return len(o.ready)+o.making < want && len(o.ready)+o.making+o.running < max(o.options.Max, 2)
}
