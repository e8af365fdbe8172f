package container

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

func TestChooseGoesAroundTheProcessorsThereAre(t *testing.T) {
	var all unix.CPUSet
	for _, cpu := range []int{1, 4, 5} {
		all.Set(cpu)
	}
	for _, tt := range []struct {
		first, want int
		chosen      string
	}{
		{0, 1, "[1]"},
		{1, 1, "[4]"},
		{2, 2, "[1 5]"},
		{3, 1, "[1]"},
	} {
		set := choose(&all, tt.first, tt.want)
		var got []int
		for cpu := range 8 {
			if set.IsSet(cpu) {
				got = append(got, cpu)
			}
		}
		if fmt.Sprint(got) != tt.chosen {
			t.Errorf("choose(%d, %d) = %v, want %s", tt.first, tt.want, got, tt.chosen)
		}
	}
}
