package history

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/bridge/record"
)

// BenchmarkRecord reads 200 MB of entries, as of some 40,000 runs with three calls each.
func BenchmarkRecord(b *testing.B) {
	r := Open(b.TempDir())
	j := record.Open(record.Options{Dir: r.dir})
	answer := strings.Repeat("x", 500)
	size, runs := int64(0), 0
	for ; size < 200e6; runs++ {
		run := j.Begin(fmt.Sprintf("%010x", runs*7919), "")
		must(b, run.Append(record.RunStart{
			Command: "serve", Client: record.Client{Name: "claude-code", Version: "2.1.0", Era: "2025-11-25"}, User: "ada", Code: record.TextOf("print(1)"),
			Grants: record.Grants{Servers: []string{"github", "calendar"}}, Policy: strings.Repeat("0", 64), Timeout: 30,
		}))
		must(b, run.Append(record.RunReady{Image: record.Image{Name: "python:3.14-slim", Digest: "sha256:" + strings.Repeat("0", 64)}, Tools: strings.Repeat("0", 64)}))
		for n := range 3 {
			must(b, run.Append(record.CallStart{Call: n, Effect: "tools/call", Server: "github", Tool: "list_issues", Arguments: record.TextOf(`{"state":"open"}`), By: "pin", Entry: strings.Repeat("0", 64), Definition: strings.Repeat("0", 64)}))
			must(b, run.Append(record.CallEnd{Call: n, Server: "github", Tool: "list_issues", Outcome: record.OK, Duration: 1500, Answer: record.TextOf(answer)}))
		}
		must(b, run.Append(record.RunEnd{Status: "success", Calls: 3, Duration: 9000, Stdout: record.TextOf("1\n")}))
		must(b, run.Append(record.RunCost{CPU: 1000, Peak: 10 << 20}))
		if runs%1000 == 0 {
			info, err := os.Stat(r.path(onlyFile(b, r)))
			must(b, err)
			size = info.Size()
		}
	}
	must(b, j.Close())
	measure := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size)
			before := cpu()
			for b.Loop() {
				must(b, f())
			}
			b.ReportMetric(float64(cpu()-before)/1e9/float64(b.N), "cpu-s/op")
		})
	}
	all := func(f Filter) func() error {
		return func() error {
			for _, err := range r.Runs(f) {
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	measure("Newest20", func() error {
		n := 0
		for _, err := range r.Runs(Filter{}) {
			if n++; n == 20 || err != nil {
				return err
			}
		}
		return nil
	})
	measure("AllRuns", all(Filter{}))
	measure("NoSuchServer", all(Filter{Server: "jira"}))
	measure("Show", func() error {
		_, err := r.Show(fmt.Sprintf("%010x", runs/2*7919))
		return err
	})
	measure("Stats", func() error { _, err := r.Stats(Filter{}); return err })
	measure("Heads", func() error { _, err := r.Heads(); return err })
	measure("Verify", func() error {
		report, err := r.Verify(nil)
		if err == nil && report.Problems != nil {
			err = fmt.Errorf("%v", report.Problems)
		}
		return err
	})
}

// cpu returns the processor time of this process.
func cpu() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
