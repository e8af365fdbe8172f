//go:build figures

package e2e

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// TestNeighborFigures prints how long a warm run takes while another run has the host
// work for it: the median, which should stay below 20 ms, and the slowest.
func TestNeighborFigures(t *testing.T) {
	c := firstHost(t).serveCrowded(t)
	t.Logf("%-24s %9s %9s %9s", "beside", "median", "90 %", "slowest")
	for _, name := range slices.Sorted(maps.Keys(greed)) {
		var all []time.Duration
		for len(all) < 100 { // some code ends at once
			all = append(all, c.besideHostile(t, greed[name], 1, 6)...)
		}
		slices.Sort(all)
		t.Logf("%-24s %9s %9s %9s", name, ms(all[len(all)/2]), ms(all[len(all)*9/10]), ms(all[len(all)-1]))
	}
}

func ms(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }
