package container

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

func cpuSet(cpus ...int) *unix.CPUSet {
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return &set
}

// TestOneProcessorIsLeftToTheHost, the same whichever sandbox it is.
func TestOneProcessorIsLeftToTheHost(t *testing.T) {
	for _, tt := range []struct {
		all  *unix.CPUSet
		want string
	}{
		{cpuSet(0), "[0]"},
		{cpuSet(0, 1), "[1]"},
		{cpuSet(2, 4, 5), "[4 5]"},
	} {
		if got := fmt.Sprint(sandboxCPUs(tt.all)); got != tt.want {
			t.Errorf("sandboxes get %s, want %s", got, tt.want)
		}
	}
}

func TestChooseGoesAroundTheProcessorsThereAre(t *testing.T) {
	for _, tt := range []struct {
		first, want int
		chosen      *unix.CPUSet
	}{
		{0, 1, cpuSet(1)},
		{1, 1, cpuSet(4)},
		{2, 2, cpuSet(1, 5)},
		{3, 1, cpuSet(1)},
	} {
		if got := choose([]int{1, 4, 5}, tt.first, tt.want); *got != *tt.chosen {
			t.Errorf("choose(%d, %d) = %v, want %v", tt.first, tt.want, got, tt.chosen)
		}
	}
}
