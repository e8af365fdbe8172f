package main

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/rules"
	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy"
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

// namedTools returns a function that says how policies know servers and tools: those that are known now with
// their aliases, others by their names.
func namedTools(o uiOptions, found config.Config) func(server, tool string) (policy.Server, policy.Tool) {
	servers, tools := map[string]policy.Server{}, map[[2]string]policy.Tool{}
	if len(found.Servers) > 0 {
		proxy := mcpproxy.New(found, proxyOptions(o.Settings, nil))
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
