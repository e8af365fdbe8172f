package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/rules"
	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci/doctor"
)

// maxPolicyFile bounds what is read of the policy, as package policy does.
const maxPolicyFile = 1 << 20

// policyFile reads the policy for the page, which shows it and proposes lines for it. It is read anew for
// each page.
func (o uiOptions) policyFile() rules.File {
	quiet := slog.New(slog.DiscardHandler)
	found := discoverServers(o.Settings, quiet).config
	f := rules.File{Policy: loadPolicy(o.Settings, quiet), Named: namedTools(o, found)}
	f.Path, _ = o.Settings.PolicyFile()
	text, err := state.ReadRegular(f.Path, maxPolicyFile)
	f.There = !errors.Is(err, fs.ErrNotExist)
	if !f.There && f.Policy.Err() == nil {
		f.Refusing = o.refusing()
	}
	switch {
	case f.Policy.Err() != nil || !f.There:
	case err != nil: // it was read a moment ago
		f.Policy = nil
	default: // lines are proposed for the very text that is judged
		f.Text, f.Policy = text, policy.Parse(text, f.Path)
	}
	for _, check := range policyChecks(o.Settings, found) {
		f.Remarks = append(f.Remarks, rules.Remark{Text: check.Text, Wrong: check.Status != doctor.CheckOK})
	}
	return f
}

// lookForPolicy notes whether the policy file is there now.
func (o uiOptions) lookForPolicy() {
	file, _ := o.Settings.PolicyFile()
	if _, err := os.Stat(file); err == nil {
		o.policySeen.Store(time.Now().UnixNano())
	}
}

// refusing names the running serves that had read a policy file, which is not there now.
func (o uiOptions) refusing() (names []string) {
	all, _ := runningProcesses(o.Settings) // of those that cannot be seen nothing is known
	var seen time.Time
	if at := o.policySeen.Load(); at > 0 {
		seen = time.Unix(0, at)
	}
	for _, p := range withPolicy(all, seen, o.history()) {
		names = append(names, console.Plain(p.String()))
	}
	return names
}

// beginSlack is more than what the start of a process is known to.
const beginSlack = 2 * time.Second

// maxStarts bounds the runs that are looked at for the policy of their processes.
const maxStarts = 10_000

// withPolicy returns the serves that had read a policy file: they began before it was last seen there, or
// a run of theirs is on record with one.
func withPolicy(all []runningProcess, seen time.Time, from *history.Record) (had []runningProcess) {
	began := map[int]time.Time{}
	oldest := time.Now()
	for _, p := range all {
		switch {
		case p.PID == 0 || p.Since.IsZero() || p.Command != "serve" && p.Command != "run":
		case p.Since.Before(seen):
			had = append(had, p)
		default:
			began[p.PID] = p.Since.Add(-beginSlack)
			if began[p.PID].Before(oldest) {
				oldest = began[p.PID]
			}
		}
	}
	read := map[int]bool{}
	n := 0
	for e, err := range from.Newest(record.KindRunStart) {
		if n++; err != nil || n > maxStarts || len(read) == len(began) || e.Time.Before(oldest) {
			break
		}
		start, ok := e.Body.(*record.RunStart)
		if !ok {
			continue
		}
		if since, ours := began[start.PID]; ours && start.Policy != "" && start.Host == record.HostName("") && !e.Time.Before(since) {
			read[start.PID] = true
		}
	}
	for _, p := range all {
		if read[p.PID] {
			had = append(had, p)
		}
	}
	return had
}

// namedTools returns a function that says how policies know servers and tools: those that are known now with
// their aliases, others by their names.
func namedTools(o uiOptions, found config.Config) func(server, tool string) (policy.Server, policy.Tool) {
	servers, tools := map[string]policy.Server{}, map[[2]string]policy.Tool{}
	if len(found.Servers) > 0 {
		proxy := openProxy(found, o.Settings, nil)
		defer proxy.Close()
		for _, s := range found.Servers {
			servers[s.Name] = policy.Server{Name: s.Name, Alias: s.Alias}
			for _, t := range proxy.KnownTools(s.Name) {
				tools[[2]string{s.Name, t.Name}] = policy.Tool{Name: t.Name, Alias: t.Alias, Twins: t.Twins()}
			}
		}
	}
	return func(server, tool string) (policy.Server, policy.Tool) {
		s, ok := servers[server]
		if !ok {
			s = policy.Server{Name: server, Alias: pyname.Server(server, map[string]bool{})}
		}
		t, ok := tools[[2]string{server, tool}]
		if !ok {
			t = policy.Tool{Name: tool}
		}
		return s, t
	}
}
