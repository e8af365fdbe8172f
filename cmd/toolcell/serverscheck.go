package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A checked server is a row of servers check.
type checked struct {
	Name   string `json:"name"`
	Status string `json:"status"` // ready, failed, or why it is not started
	Tools  int    `json:"tools"`
	Millis int64  `json:"ms"` // until its tools were known
	Source string `json:"source"`
	Where  string `json:"where,omitempty"` // as in servers list
	Error  string `json:"error,omitempty"`
	Pins   string `json:"pins,omitempty"` // what differs from what is pinned of its tools

	Partial string `json:"partial,omitempty"` // why it may have more tools

	transport string // as servers list shows it

	reason string   // the error without the further lines that the server wrote
	lines  []string // those
}

// serversCheck starts servers, a few at a time, and fails if one cannot be
// used. Disabled servers and duplicates are left out unless they are named.
func serversCheck(ctx context.Context, o Options, p *mcpproxy.Proxy) error {
	names := o.Args
	if len(names) == 0 {
		printUnread(o.Err, p.Problems())
	}
	var rows []checked
	for _, st := range p.Servers() {
		if len(names) == 0 && (st.Status == config.StatusDisabled || skipped(p, st)) {
			continue
		}
		if len(names) == 0 || slices.Contains(names, st.Name) || slices.Contains(names, st.Alias) && st.Alias != "" {
			rows = append(rows, checked{Name: st.Name, Status: st.Status, Source: st.Source, Where: st.Where, Error: st.Error, transport: transportOf(st)})
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(p.Servers(), func(st mcpproxy.ServerStatus) bool { return st.Name == name || st.Alias == name }) {
			printUnread(o.Err, p.Problems()) // it may be in one of them
			_, err := p.Lookup(name)
			return err
		}
	}
	checkAll(ctx, o, p, rows)
	err := printChecked(o, rows)
	if bad := slices.IndexFunc(rows, func(r checked) bool { return r.Status != "ready" }); bad >= 0 && err == nil {
		err = &console.ExitError{Code: console.ExitFail} // the table shows the reason
	}
	return err
}

// checkAll fills the rows of servers that can be started.
func checkAll(ctx context.Context, o Options, p *mcpproxy.Proxy, rows []checked) {
	progress := console.NewProgress(o.Err, o.JSON)
	defer progress.Close()
	var mu sync.Mutex
	var waiting []string
	for _, r := range rows {
		if r.startable() {
			waiting = append(waiting, r.Name)
		}
	}
	total := len(waiting)
	show := func() {
		progress.Show(fmt.Sprintf("%d of %d servers checked; waiting for %s", total-len(waiting), total, strings.Join(waiting, ", ")))
	}
	show()
	var several errgroup.Group
	several.SetLimit(4)
	for i := range rows {
		if !rows[i].startable() {
			continue
		}
		several.Go(func() (err error) {
			defer contain.Recover("checking a server", func(err error) { rows[i].Status, rows[i].Error = "failed", err.Error() })
			rows[i].check(ctx, p)
			mu.Lock()
			defer mu.Unlock()
			waiting = slices.DeleteFunc(waiting, func(name string) bool { return name == rows[i].Name })
			show()
			return nil
		})
	}
	_ = several.Wait() // each row has its own outcome
}

// startable reports whether the check can start the server; one that failed before may
// start now.
func (r checked) startable() bool { return r.Status == "idle" || r.Status == "failed" }

// skipped reports whether an entry was left out for a reason that needs no cure.
func skipped(p *mcpproxy.Proxy, st mcpproxy.ServerStatus) bool {
	return slices.ContainsFunc(p.Problems(), func(pr config.Problem) bool {
		return pr.Server == st.Name && pr.Source == st.Source && pr.Skipped && pr.Status == st.Status
	})
}

func (r *checked) check(ctx context.Context, p *mcpproxy.Proxy) {
	began := time.Now()
	tools, err := p.Refresh(ctx, r.Name) // the list of an earlier start proves nothing
	r.Tools, r.Millis, r.Status, r.Error = len(tools), time.Since(began).Milliseconds(), "ready", ""
	if err != nil {
		lines, reason := mcpproxy.Reason(err)
		r.Status, r.Error, r.reason, r.lines = "failed", err.Error(), reason.Error(), lines
		if errors.Is(err, context.Canceled) {
			r.Error, r.reason, r.lines = "interrupted", "", nil
		}
		return
	}
	for _, st := range p.Servers() {
		if st.Name == r.Name && st.Partial != "" {
			r.Partial = "not all of its tools are known: " + st.Partial
		}
	}
	pinned, err := p.Pins(r.Name)
	if r.Pins = pinRemark(r.Name, pinned); err != nil {
		r.Pins = err.Error()
	}
}

func printChecked(o Options, rows []checked) error {
	columns := []console.Column{
		{Name: "NAME"},
		{Name: "STATUS", Color: console.ColorsFor(o.Out).Status},
		{Name: "TRANSPORT"},
		{Name: "TOOLS", Right: true},
		{Name: "TIME", Right: true},
		{Name: "REMARK", Wrap: true},
	}
	err := printRows(o, rows, noServers, noServersNext, columns, func(r checked) []string {
		tools, took := "", ""
		if r.Status == "ready" {
			tools, took = fmt.Sprint(r.Tools), fmt.Sprintf("%d ms", r.Millis)
		}
		return []string{r.Name, r.Status, r.transport, tools, took, remarkLine(cmp.Or(r.reason, r.Error, r.Partial, r.Pins))}
	})
	if !o.JSON {
		printOutput(o.Streams, rows)
	}
	return err
}

// remarkLine returns a remark in one line. Those after the first explain it.
func remarkLine(remark string) string {
	return console.OneLine(strings.ReplaceAll(remark, "\n", "; "), maxRemark)
}

const (
	maxRemark   = 1600 // columns of a reason: it is at most some hundred bytes, what is around it, and what explains it
	outputLines = 20   // that are shown of what a server wrote
)

// printOutput prints the output of servers that could not be started.
func printOutput(s *console.Streams, rows []checked) {
	for _, r := range rows {
		if len(r.lines) == 0 {
			continue
		}
		lines := strings.Join(r.lines[max(0, len(r.lines)-outputLines):], "\n  ")
		fmt.Fprintf(s.Stdout(), "\nThe end of what %s wrote to stderr:\n  %s\n", console.Plain(r.Name), console.PlainText(lines))
	}
}
