package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/run"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/oci/doctor"
)

// loadPolicy reads the user's policy. With an invalid file the program starts,
// but every call of code is refused with the reason.
func loadPolicy(s settings.Settings, log *slog.Logger) *policy.Policy {
	file, named := s.PolicyFile()
	if file == "" {
		return nil
	}
	return policy.Load(file, named, log)
}

// checkMounts refuses folders that code must not see, also by links that servers could have made.
func checkMounts(s settings.Settings) error {
	return s.CheckMounts(func() []string {
		quiet := slog.New(slog.DiscardHandler) // a policy that is wrong is said elsewhere
		return loadPolicy(s, quiet).NewEnforcer().WrittenMounts()
	})
}

// A belowError leaves errors out of a log.
type belowError struct{ slog.Handler }

func (h belowError) Enabled(ctx context.Context, level slog.Level) bool {
	return level < slog.LevelError && h.Handler.Enabled(ctx, level)
}

// notePolicy logs the error of the policy, unless the run failed because of it.
func notePolicy(log *slog.Logger, rules *policy.Policy, r *run.Result) {
	if err := rules.Err(); err != nil && !strings.Contains(r.Error, err.Error()) {
		log.Error("nothing may be called until the policy is fixed", "err", err)
	}
}

// warnOfSections logs the sections of the policy that match no server and are probably
// about one of these: they protect nothing. Others may be about servers of another project.
func warnOfSections(log *slog.Logger, rules *policy.Policy, servers []config.Server) {
	for _, section := range rules.UnmatchedSections(policyServers(servers)) {
		if section.Meant != "" {
			log.Warn("a section of the policy matches no server", "section", section.Name, "meant", section.Meant)
		}
	}
}

func policyServers(servers []config.Server) []policy.Server {
	names := make([]policy.Server, len(servers))
	for i, s := range servers {
		names[i] = policy.Server{Name: s.Name, Alias: s.Alias}
	}
	return names
}

// policyTypos returns the error of the policy, and its sections that match no server.
func policyTypos(s settings.Settings, servers []mcpproxy.ServerStatus) (all []string) {
	names := make([]policy.Server, len(servers))
	for i, s := range servers {
		names[i] = policy.Server{Name: s.Name, Alias: s.Alias}
	}
	quiet := slog.New(slog.DiscardHandler)
	p := loadPolicy(s, quiet)
	file, _ := s.PolicyFile()
	if err := p.Err(); err != nil {
		all = append(all, fmt.Sprintf("nothing may be called until the policy is fixed: %v", err))
	}
	for _, section := range p.UnmatchedSections(names) {
		said := fmt.Sprintf("policy %s, %s matches none of these servers", file, section.Name)
		if section.Meant != "" {
			said += fmt.Sprintf("; did you mean %q?", section.Meant)
		}
		all = append(all, said)
	}
	for _, u := range unmatchedTools(p, s, discoverServers(s, quiet).config) {
		all = append(all, fmt.Sprintf("policy %s, %s", file, u))
	}
	return all
}

// unmatchedTools returns what in the policy matches no tool of the user's servers, as far as
// these are known from earlier. A glob may be about tools that are yet to come.
func unmatchedTools(p *policy.Policy, s settings.Settings, found config.Config) []policy.UnmatchedTool {
	var known []policy.KnownTools
	if len(found.Servers) > 0 {
		proxy := openProxy(found, s, nil)
		defer proxy.Close()
		for _, server := range found.Servers {
			known = append(known, gate.KnownTools(server, proxy.KnownTools(server.Name)))
		}
	}
	return slices.DeleteFunc(p.UnmatchedTools(known), func(u policy.UnmatchedTool) bool { return !u.Plain && u.Meant == "" })
}

// policyChecks are doctor's lines on the policy, if there is one.
func policyChecks(s settings.Settings, found config.Config) []doctor.Check {
	file, _ := s.PolicyFile()
	edit := "${EDITOR:-vi} " + text.ShellWord(file)
	p := loadPolicy(s, slog.New(slog.DiscardHandler))
	contents := p.Contents()
	switch err := p.Err(); {
	case err != nil:
		return []doctor.Check{doctor.Degraded("RC-POLICY", fmt.Sprintf("code may call nothing: %v", err), "# correct the file, or remove it:\n"+edit)}
	case contents == nil:
		return nil
	}
	check := doctor.OK("RC-POLICY", describePolicy(file, *contents))
	if unmatched := p.UnmatchedSections(policyServers(found.Servers)); len(unmatched) > 0 {
		check.Text += "; " + describeUnmatched(unmatched)
		// Others may be about servers of another project.
		if slices.ContainsFunc(unmatched, func(u policy.UnmatchedSection) bool { return u.Meant != "" }) {
			check = doctor.Degraded(check.Code, check.Text, "# correct the names, or remove the sections:\n"+edit)
		}
	}
	const maxNamed = 10
	var said []string
	unmatched := unmatchedTools(p, s, found)
	for _, u := range unmatched[:min(len(unmatched), maxNamed)] {
		said = append(said, u.String())
	}
	if n := len(unmatched) - maxNamed; n > 0 {
		said = append(said, fmt.Sprintf("and %d more", n))
	}
	if len(said) == 0 {
		return []doctor.Check{check}
	}
	return []doctor.Check{check, doctor.Degraded("RC-POLICY-TOOLS",
		"the policy names tools that there are not: "+strings.Join(said, "; "), "# correct the names, or remove them:\n"+edit)}
}

// describePolicy sums up a policy.
func describePolicy(file string, found policy.Contents) string {
	said := fmt.Sprintf("%s says in %s what code may call", file, text.Plural(found.Sections, "section"))
	if found.NetworkRules > 0 {
		said += fmt.Sprintf(", and in %s what it may reach over the network", text.Plural(found.NetworkRules, "rule"))
	}
	if len(found.When) > 0 {
		said += "; " + strings.Join(found.When, ", ") + " may ask you, depending on the arguments of a call"
	}
	return said
}

// describeUnmatched names sections that protect nothing.
func describeUnmatched(sections []policy.UnmatchedSection) string {
	named := make([]string, len(sections))
	for i, s := range sections {
		named[i] = s.Name
		if s.Meant != "" {
			named[i] += fmt.Sprintf(" (did you mean %q?)", s.Meant)
		}
	}
	return "no server that toolcell finds here matches " + strings.Join(named, ", ")
}
