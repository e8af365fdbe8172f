package oci

import (
	"testing"
	"time"
)

// TestPoolFollowsDemand counts without starting anything.
func TestPoolFollowsDemand(t *testing.T) {
	o := &group{pool: &pool{source: poolSource{MemoryAvailable: func() int64 { return 1 << 40 }}, options: PoolOptions{Max: 4}}}
	o.pool.groups = []*group{o}
	for range 3 {
		o.countRuns(1)
	}
	for range 3 {
		o.countRuns(-1)
	}
	if got := o.target(); got != 3 {
		t.Errorf("after 3 at once %d wait", got)
	}
	for range 9 {
		o.countRuns(1)
	}
	if got := o.target(); got != 4 {
		t.Errorf("%d wait, more than the most", got)
	}
	for range 9 {
		o.countRuns(-1)
	}
	o.window = time.Now().Add(-3 * demandWindow)
	o.countRuns(1)
	o.countRuns(-1)
	if got := o.target(); got != 1 {
		t.Errorf("long after it %d wait", got)
	}
	o.p.Limits.Memory = 1 << 60
	if got := o.target(); got != 0 {
		t.Errorf("%d wait where there is no memory for a run", got)
	}
}
