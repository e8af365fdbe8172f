package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// TestProcFilesAreMadeAgain, since a cleaner of old files may remove one.
func TestProcFilesAreMadeAgain(t *testing.T) {
	r, err := Open(t.TempDir(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		dir, err := r.procFiles(r.dir, spec.Host{}, 64<<20)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "meminfo")
		text, err := os.ReadFile(file)
		if err != nil || host.Number(text, "MemTotal") != 64<<10 || host.Number(text, "MemAvailable") != 48<<10 {
			t.Errorf("got %s, %v", text, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	ours, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{0, 1 << 60} {
		texts, err := procTexts(limit)
		if got, want := host.Number(texts["/proc/meminfo"], "MemTotal"), host.Number(ours, "MemTotal"); err != nil || got != want {
			t.Errorf("with a limit of %d there are %d kB, %v, want %d as the host has", limit, got, err, want)
		}
	}
}

func TestQuietStat(t *testing.T) {
	const stat = "cpu  1 2 3\ncpu0 1 2 3\nintr 5 6 7\nctxt 8\nbtime 1700000000\nprocesses 9\nprocs_running 4\nsoftirq 1 2\n\n"
	const want = "cpu 0 0 0\ncpu0 0 0 0\nintr 0\nctxt 0\nbtime 1700000000\nprocesses 0\nprocs_running 1\nsoftirq 0\n"
	if got := string(quietStat([]byte(stat))); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, strings.TrimSpace(want))
	}
}
