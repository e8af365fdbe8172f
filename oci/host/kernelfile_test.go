package host

import (
	"testing"
)

func TestNumber(t *testing.T) {
	const status = "Name:\tVmRSS: 9 kB\nVmPTE:\t      44 kB\nVmRSS:\t    1234 kB\nThreads:\tmany\n"
	for name, want := range map[string]int64{"VmRSS": 1234, "VmPTE": 44, "Threads": 0, "FDSize": 0} {
		if got := Number([]byte(status), name); got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
	if got := Number([]byte("max 3\n"), "max"); got != 3 {
		t.Errorf("max = %d, want 3", got)
	}
}
