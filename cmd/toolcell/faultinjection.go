//go:build faults

package main

import (
	"os"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
)

// faultsEnv names points at which this binary panics once each, separated by semicolons.
// Only the build tag faults, which no release has, makes it count.
const faultsEnv = "TOOLCELL_TEST_FAULTS"

func init() {
	points := os.Getenv(faultsEnv)
	if points == "" {
		return
	}
	var mu sync.Mutex
	left := map[string]bool{}
	for p := range strings.SplitSeq(points, ";") {
		left[p] = true
	}
	contain.Inject(forGood{}, func(point string) bool {
		mu.Lock()
		defer mu.Unlock()
		fault := left[point]
		delete(left, point)
		return fault
	})
}

type forGood struct{}

func (forGood) Cleanup(func()) {}
