package page

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
)

// checksOf fills in what the page of the sandbox shows: the same text everywhere.
func checksOf(said string) func(*Options) {
	return func(o *Options) {
		o.Sandbox = func(context.Context) SandboxView {
			commands := []Command{{Why: said, Text: said}, {Why: said, Text: said}}
			return SandboxView{
				Summary: said, Checks: []Check{{Code: said, Status: said, Text: said, Cure: said}, {Cure: "# " + said}}, Problem: said, Notes: []string{said},
				Tables: []Table{{Title: said, Columns: []console.Column{{Name: said}, {Name: said, Right: true}}, Rows: [][]string{{said, said}}, More: 9, Commands: commands}},
			}
		}
	}
}

// TestChecksAreText, with commands to copy unless the page only shows, and what is cut is said.
func TestChecksAreText(t *testing.T) {
	_, body := visit(t, checksOf(evil)).get("/sandbox")
	isText(t, "/sandbox", body)
	for _, want := range []string{"alert(1)", "9 more rows", `role="alert"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q: %s", want, body)
		}
	}
	const said = "toolcell-do-something"
	copies(t, checksOf(said), said, map[string]int{"/sandbox": 3})
}

// TestOneCheckAtATime: a host is not checked twice at once, each check has a limit, and Close waits for it.
func TestOneCheckAtATime(t *testing.T) {
	var running, most, ended atomic.Int32
	begun := make(chan struct{}, 10)
	release := make(chan struct{})
	v := visit(t, func(o *Options) {
		o.Sandbox = func(ctx context.Context) SandboxView {
			most.Store(max(most.Load(), running.Add(1)))
			defer func() { running.Add(-1); ended.Add(1) }()
			if _, limited := ctx.Deadline(); !limited {
				t.Error("it has no limit")
			}
			begun <- struct{}{}
			<-release
			return SandboxView{}
		}
	})
	const windows = 3
	answers := make(chan error, windows)
	for range windows {
		go func() {
			resp, err := v.web.Get(v.base + "/sandbox")
			if err == nil {
				err = resp.Body.Close()
			}
			answers <- err
		}()
	}
	<-begun
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if v.server.Close(); ended.Load() == 0 {
			t.Error("Close did not wait")
		}
	}()
	close(release)
	for range windows {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	<-closed
	if most.Load() != 1 || ended.Load() != windows {
		t.Errorf("%d at once, %d ended", most.Load(), ended.Load())
	}
}
