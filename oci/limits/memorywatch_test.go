package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/oci/spec"
)

// TestMemoryIsThatOfAllProcesses: shared pages count once, and what the kernel holds for
// them counts too.
func TestMemoryIsThatOfAllProcesses(t *testing.T) {
	const (
		private = 2 * 400 << 10
		kernel  = 2*10<<10 + 2*3*threadBytes
		files   = 2 * 5 * fileBytes
	)
	for name, c := range map[string]struct {
		table  int // entries for files of each process
		limits spec.Limits
		much   bool
		pids   bool
	}{
		"no limits":             {freeFiles, spec.Limits{}, false, false},
		"all that there may be": {freeFiles, spec.Limits{Memory: private + kernel}, false, false},
		"more":                  {freeFiles, spec.Limits{Memory: private + kernel - 1}, true, false},
		"with their files":      {freeFiles + 5, spec.Limits{Memory: private + kernel + files}, false, false},
		"more files":            {freeFiles + 5, spec.Limits{Memory: private + kernel + files - 1}, true, false},
		"as many threads":       {freeFiles, spec.Limits{PIDs: 6}, false, true},
		"fewer threads":         {freeFiles, spec.Limits{PIDs: 7}, false, false},
	} {
		proc := t.TempDir()
		for _, pid := range []string{"1", "23"} {
			dir := filepath.Join(proc, pid)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{
				"status":       fmt.Sprintf("Name:\tx\nFDSize:\t%d\nVmRSS:\t 1000 kB\nVmPTE:\t   10 kB\nThreads:\t3\n", c.table),
				"smaps_rollup": "Rss: 1000 kB\nPss: 600 kB\nPss_Anon:     400 kB\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		w := &memoryWatch{limits: c.limits, watching: &watching{watch: &Watch{}}}
		for dir, file := range map[string]**os.File{proc: &w.proc, t.TempDir(): &w.root} {
			f, err := os.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			*file = f
		}
		if much, pids := w.tooMuch(), w.watch.pids.Load(); much != c.much || pids != c.pids {
			t.Errorf("%s: too much %v, too many %v", name, much, pids)
		}
	}
}
