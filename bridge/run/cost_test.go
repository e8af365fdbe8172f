package run

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/internal/signals"
	"github.com/toolcell/toolcell/internal/signals/signalstest"
	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/limits"
)

// A metered sandbox has taken a second more at each look, and n MiB at the most after n.
type metered struct {
	Sandbox
	looks atomic.Int64
	all   *atomic.Int64
}

func (m *metered) Usage() limits.Usage {
	m.all.Add(1)
	n := m.looks.Add(1)
	return limits.Usage{CPU: time.Duration(n) * time.Second, Peak: n << 20}
}

// newMetered makes a server whose sandboxes are metered, and counts the looks at all of them.
func newMetered(t *testing.T, change func(*Options)) (*Runs, *atomic.Int64) {
	t.Helper()
	looks := &atomic.Int64{}
	return newServer(t, nil, func(o *Options) {
		inner := o.Sandboxes
		o.Sandboxes = startFunc(func(ctx context.Context, p oci.Process) (Sandbox, error) {
			sb, err := inner.Start(ctx, p)
			return &metered{Sandbox: sb, all: looks}, err
		})
		o.Sessions = 1
		if change != nil {
			change(o)
		}
	}), looks
}

// TestWhatARunTookIsExported, with a record and without one: in metrics, and of a session in the span of each run
// what that run took.
func TestWhatARunTookIsExported(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		t.Run(fmt.Sprint("recorded ", recorded), func(t *testing.T) {
			c := signalstest.Start(t)
			dir := t.TempDir()
			exported := signals.Open(signals.Options{Log: slog.New(slog.DiscardHandler)})
			s, _ := newMetered(t, func(o *Options) {
				if o.Signals = exported; recorded {
					o.Record = record.Open(record.Options{Dir: dir})
				}
			})
			var runs []*Result
			for _, r := range []Request{{Code: "1"}, {Code: "1", Session: "s"}, {Code: "1 / 0", Session: "s"}, {Code: " "}} {
				runs = append(runs, s.Do(t.Context(), r))
			}
			s.Close()
			exported.Close()
			want := []string{" ", "1 1048576", "1 2097152", " "}
			for i, span := range c.Named("toolcell.run") {
				if got := fmt.Sprint(span.Attrs["toolcell.run.cpu.time"], " ", span.Attrs["toolcell.run.memory.peak"]); got != want[i] {
					t.Errorf("the span of run %d has %q, want %q", i, got, want[i])
				}
			}
			sums := map[string]float64{}
			for _, name := range []string{"toolcell.run.cpu.time", "toolcell.run.memory.peak"} {
				for _, p := range c.Metric(name).GetHistogram().GetDataPoints() {
					sums[name+" "+signalstest.Attributes(p.Attributes)["toolcell.run.status"]] = p.GetSum()
				}
			}
			if !maps.Equal(sums, map[string]float64{
				"toolcell.run.cpu.time success": 2, "toolcell.run.cpu.time error": 1, "toolcell.run.memory.peak success": 2 << 20, "toolcell.run.memory.peak error": 2 << 20,
			}) {
				t.Errorf("metrics: %v", sums)
			}
			files, _ := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
			if (len(files) > 0) != recorded {
				t.Errorf("on record: %q", files)
			}
			if entries, _ := onRecord(t, dir, runs[1].Run); recorded && !strings.HasSuffix(kindsOf(entries), "run.end run.cost") {
				t.Errorf("on record: %s", kindsOf(entries))
			}
		})
	}
}

// TestWhatARunTookCostsNothing unless something wants to know it.
func TestWhatARunTookCostsNothing(t *testing.T) {
	s, looks := newMetered(t, nil)
	for _, r := range []Request{{Code: "1"}, {Code: "1", Session: "s"}} {
		if res := s.Do(t.Context(), r); res.IsError() {
			t.Fatal(res.Error)
		}
	}
	s.Close()
	if n := looks.Load(); n > 0 {
		t.Errorf("sandboxes were looked at %d times", n)
	}
}
