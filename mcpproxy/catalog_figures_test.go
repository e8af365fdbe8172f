//go:build figures

package mcpproxy

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestCatalogFigures measures what docs/catalog.md says of 100 servers with
// 100 tools each: make bench-servers.
func TestCatalogFigures(t *testing.T) {
	dir := t.TempDir()
	servers := manyOf(t, dir, "", scaleServers, scaleTools, 4)
	runtime.GC()
	before := resident(t, "VmRSS")
	figure := func(what string, f func()) {
		start, cpu := time.Now(), processorTime(t)
		f()
		took, used := time.Since(start), processorTime(t)-cpu
		t.Logf("%-34s %9.3f ms, %9.3f ms of processors", what, float64(took.Microseconds())/1000, float64(used.Microseconds())/1000)
	}
	var p *Proxy
	figure("New", func() { p = New(config.Config{Servers: servers}, Options{CatalogDir: dir}) })
	t.Cleanup(func() { _ = p.Close() })
	figure("Servers, first", func() { p.Servers() })
	figure("Servers", func() { p.Servers() })
	search := func() {
		if docs, _, err := p.Search(t.Context(), "change the milestone of an issue", 5, false, AnyServer); err != nil || len(docs) != 5 {
			t.Fatalf("%d docs, %v", len(docs), err)
		}
	}
	figure("search, first: read and index all", search)
	figure("search", search)
	figure("search", search)
	figure("docs of a server, full", func() { _, _ = p.Docs(t.Context(), "server-50", "", true) })
	figure("docs of one tool, full", func() { _, _ = p.Docs(t.Context(), "server-51", "get_issue", true) })
	t.Logf("%-34s %8.1f MB, at most %.1f MB (before: %.1f)", "resident", resident(t, "VmRSS"), resident(t, "VmHWM"), before)
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	t.Logf("%-34s %8.1f MB", "heap in use", float64(m.HeapInuse)/1e6)
}

// processorTime is what this process has used, which a busy machine does not
// lengthen.
func processorTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// resident reads a line of /proc/self/status, in megabytes.
func resident(tb testing.TB, field string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), field+":")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		tb.Fatal(err)
	}
	return float64(kb) / 1000
}
