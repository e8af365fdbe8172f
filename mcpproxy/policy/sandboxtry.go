package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
)

// ForTry returns the sandbox for a try of the server: it is on, whatever the policy says. With rights it
// gives what the server's section gives, and otherwise nothing. Where no host may be reached there is a
// network nevertheless, which notes the hosts that it refuses.
func (s *Sandbox) ForTry(withRights bool) *Sandbox {
	try := &Sandbox{File: s.File, server: s.server, Memory: DefaultServerMemory, PIDs: DefaultServerPIDs}
	if withRights {
		*try = *s
	}
	try.Mode, try.Section = SandboxOn, "["+toml.Key{"servers", s.server}.String()+"]"
	if try.network == nil {
		try.network = &hosts.ServerRules{}
		try.network.Named(try.Section + " network")
	}
	return try
}

// SectionWith writes the section of a server that runs in a sandbox: what the policy gives it, and
// further folders to be read, hosts in the form of network, and secrets as elements of that list, each of
// which are left out if the section has them. What the policy would refuse is left out too, with the reason.
func (s *Sandbox) SectionWith(mounts, network []string, secrets []Secret) (section string, wrong []error) {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\nsandbox = %s\n", toml.Key{"servers", s.server}, toml.Quote(string(SandboxOn)))
	add := func(key, value string) { fmt.Fprintf(&b, "%s = %s\n", key, value) }
	if s.Image != "" {
		add("image", toml.Quote(s.Image))
	}
	if all := s.mountsWith(mounts); len(all) > 0 {
		add("mounts", "["+strings.Join(all, ", ")+"]")
	}
	rules, wrong := s.network.With(network)
	if s.network != nil || !rules.Empty() {
		add("network", rules.String())
	}
	if all := s.secretsWith(secrets, rules); len(all) > 0 {
		add("secrets", "["+strings.Join(all, ", ")+"]")
	}
	if s.Memory != DefaultServerMemory {
		add("memory", strconv.FormatInt(s.Memory, 10))
	}
	if s.CPUs != 0 {
		add("cpus", strconv.FormatFloat(s.CPUs, 'f', -1, 64))
	}
	if s.PIDs != DefaultServerPIDs {
		add("pids", strconv.Itoa(s.PIDs))
	}
	if s.install != nil {
		add("install", s.install.String())
	}
	return b.String(), wrong
}

// SectionOff writes the section of a server that is not to run in a sandbox.
func (s *Sandbox) SectionOff() string {
	return fmt.Sprintf("[%s]\nsandbox = %s\n", toml.Key{"servers", s.server}, toml.Quote(string(SandboxOff)))
}

// mountsWith are elements of the list mounts.
func (s *Sandbox) mountsWith(sources []string) (all []string) {
	for _, m := range s.Mounts {
		element := "{ source = " + toml.Quote(m.Source)
		if m.Target != m.Source {
			element += ", target = " + toml.Quote(m.Target)
		}
		if m.Write {
			element += ", write = true"
		}
		all = append(all, element+" }")
	}
	for _, source := range sources {
		if !slices.ContainsFunc(s.Mounts, func(m Mount) bool { return m.Source == source || m.Target == source }) && len(all) < maxMounts {
			all = append(all, "{ source = "+toml.Quote(source)+" }")
		}
	}
	return all
}

// A Secret is a variable whose value a server gets or, if Host is not empty, that host.
type Secret struct{ Env, Host string }

// secretsWith are elements of the list secrets.
func (s *Sandbox) secretsWith(more []Secret, network *hosts.ServerRules) (all []string) {
	for _, has := range s.secrets {
		if has.plain != "" {
			all = append(all, toml.Quote(has.plain))
		} else {
			all = append(all, has.ofHost.String())
		}
	}
	for _, m := range more {
		switch {
		case slices.Contains(s.SecretVariables(), m.Env) || len(all) >= maxSecrets:
		case m.Host != "" && network.Allows(m.Host):
			all = append(all, fmt.Sprintf("{ env = %s, host = %s }", toml.Quote(m.Env), toml.Quote(m.Host)))
		default:
			all = append(all, toml.Quote(m.Env))
		}
	}
	return all
}
