package policy

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
)

// What a server in a sandbox has if its section does not say.
const (
	DefaultServerMemory = 1 << 30
	DefaultServerPIDs   = 256
)

// A Sandbox is what the policy says of the sandbox of one server. The zero value gives nothing and
// does not say whether there is one.
type Sandbox struct {
	Mode    SandboxMode
	Rule    string  // the rule that says the Mode, with its file and section, for messages; "" if none does
	Section string  // that gives what follows, such as [servers.github]; "" if none does
	File    string  // of the policy, as people write it
	Image   string  // "" is the runtime that the server's command needs
	Mounts  []Mount // at most 20
	Memory  int64   // bytes
	CPUs    float64 // 0 is no limit
	PIDs    int

	server           string
	network, install *hosts.ServerRules
	secrets          secretList
}

// A Mount is a folder or file of the host that a server sees.
type Mount struct {
	Source string // an absolute path without . or .., whose links were not followed
	Target string // likewise, in the sandbox
	Write  bool
}

// On reports whether the server runs in a sandbox: as the policy says, and otherwise if a project's
// file has its entry.
func (s *Sandbox) On(project bool) bool { return s.Mode == SandboxOn || s.Mode == "" && project }

// Sandbox returns what the policy says of the sandbox of a server. What gives the server something
// counts only in a section that has the server's very name; if the only such section is about it by its alias, or by
// its name in another case, that is an error. Without a policy that is understood, there
// is an error, too.
func (r *Enforcer) Sandbox(s Server) (*Sandbox, error) {
	rules, file, err := r.grantedBy()
	if err != nil {
		return nil, fmt.Errorf("%w; no server may start until this is fixed", err)
	}
	box := &Sandbox{File: file, server: s.Name, Memory: DefaultServerMemory, PIDs: DefaultServerPIDs}
	if sec := rules.first(s, func(sec *section) bool { return sec.Sandbox != "" }); sec != nil {
		box.Mode, box.Rule = sec.Sandbox, rules.rule(sec.name, fmt.Sprintf("sandbox = %q", sec.Sandbox))
	}
	own := rules.first(s, func(sec *section) bool { return sec.servers.Is(s.Name) && !sec.isDefault() })
	if own == nil {
		near := rules.first(s, func(sec *section) bool { return len(sec.giving()) > 0 })
		if near != nil {
			return nil, fmt.Errorf("policy %s, %s: its %s may be for another server: a section that gives something needs the server's exact name, %q",
				file, near.name, near.giving()[0], text.Bound(s.Name, 120))
		}
		return box, nil
	}
	if err := box.take(own); err != nil {
		return nil, err
	}
	return box, nil
}

// WrittenMounts returns the folders and files of this host that any server in a sandbox may write to, as
// the policy names them.
func (r *Enforcer) WrittenMounts() (all []string) {
	rules, _, err := r.grantedBy()
	if err != nil {
		return nil // no server starts then
	}
	for _, sec := range rules.sections {
		for _, m := range sec.Mounts {
			if full, err := m.fullSource(); err == nil && m.Write {
				all = append(all, full)
			}
		}
	}
	return all
}

// take takes over what the server's own section gives.
func (s *Sandbox) take(own *section) error {
	if len(own.giving()) == 0 {
		return nil
	}
	s.Section = own.name
	s.Image, s.CPUs = string(own.Image), float64(own.CPUs)
	s.network, s.install, s.secrets = own.Network, own.Install, own.Secrets
	if own.Memory != 0 {
		s.Memory = int64(own.Memory)
	}
	if own.PIDs != 0 {
		s.PIDs = int(own.PIDs)
	}
	for _, m := range own.Mounts {
		source, err := m.fullSource()
		if err != nil {
			return fmt.Errorf("policy %s, %s mounts: %w", s.File, s.Section, err)
		}
		s.Mounts = append(s.Mounts, Mount{Source: source, Target: m.Target, Write: m.Write})
	}
	return nil
}

// Rights are what the policy gives the server beyond a plain sandbox, one on a line, for people. There
// are none if it gives nothing. They have no values of secrets.
func (s *Sandbox) Rights() (lines []string) {
	if s.Image != "" {
		lines = append(lines, "image: "+s.Image)
	}
	if s.network != nil {
		lines = append(lines, s.network.Lines("network")...)
	}
	for _, m := range s.Mounts {
		lines = append(lines, "mount: "+m.String())
	}
	if s.Memory > DefaultServerMemory {
		lines = append(lines, "memory: "+text.Size(s.Memory))
	}
	if s.PIDs > DefaultServerPIDs {
		lines = append(lines, fmt.Sprintf("processes: %d", s.PIDs))
	}
	for _, secret := range s.secrets {
		lines = append(lines, "secret: "+secret.String())
	}
	if s.install != nil {
		reach := s.install.Lines("install scripts")
		if len(reach) == 0 {
			reach = []string{"install scripts: without a network"}
		}
		lines = append(lines, reach...)
	}
	return lines
}

func (m Mount) String() string {
	how := "read-only"
	if m.Write {
		how = "which it may write to"
	}
	return fmt.Sprintf("%s at %s, %s", m.Source, m.Target, how)
}

func (s secret) String() string {
	if s.plain != "" {
		return s.plain + ", its value"
	}
	return fmt.Sprintf("%s, a placeholder; %s gets the value as %s", s.variable(), s.ofHost.Host(), s.ofHost.Header())
}

// Network returns what the server may reach, with the credentials of hosts, nil if it may reach
// nothing, and the environment that it gets: env, which is that of its entry, with the values of
// plain secrets and without those that hosts get. The bridge's network adds placeholders for these.
// Values come from env, and otherwise from the environment of this process. A missing one is an
// error that names it.
func (s *Sandbox) Network(env map[string]string) (g *hosts.Grant, inside map[string]string, err error) {
	lookup := func(name string) (string, bool) {
		if v := env[name]; v != "" {
			return v, true
		}
		return os.LookupEnv(name)
	}
	inside = maps.Clone(env)
	if inside == nil {
		inside = map[string]string{}
	}
	var credentials []hosts.Credential
	for _, secret := range s.secrets {
		name := secret.variable()
		value, _ := lookup(name)
		if value == "" {
			return nil, nil, &MissingSecretError{Variable: name, Server: s.server, Rule: fmt.Sprintf("policy %s, %s secrets", s.File, s.Section)}
		}
		if secret.plain != "" {
			inside[name] = value
			continue
		}
		delete(inside, name)
		credential, err := secret.ofHost.Credential(lookup)
		if err != nil {
			return nil, nil, fmt.Errorf("policy %s, %s secrets: %w", s.File, s.Section, err)
		}
		credentials = append(credentials, credential)
	}
	if s.network == nil {
		return nil, inside, nil
	}
	g, err = s.network.GrantAll(s.File, credentials)
	return g, inside, err
}

// Install returns what install scripts of the server's packages may reach, nil if they do not run. If
// the section lists no hosts, they run and reach nothing. They get no secrets.
func (s *Sandbox) Install() (*hosts.Grant, error) {
	if s.install == nil {
		return nil, nil
	}
	return s.install.GrantAll(s.File, nil)
}

// InstallRules are the rules of Install as the policy has them, "" if scripts do not run.
func (s *Sandbox) InstallRules() string {
	if s.install == nil {
		return ""
	}
	return s.install.String()
}

// A MissingSecretError says that a secret has no value, so that the server does not start.
type MissingSecretError struct {
	Variable, Server string
	Rule             string // that names it
}

func (e *MissingSecretError) Error() string {
	return fmt.Sprintf("%s: server %q needs a value for %s: set it in env of the server's entry, or in the environment of toolcell", e.Rule, e.Server, e.Variable)
}

// userHome returns the user's home directory.
func userHome() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil || !strings.HasPrefix(home, "/") {
		return "", errors.New("there is no home directory")
	}
	return home, nil
}

// SecretVariables returns the variables whose values are secrets by the section.
func (s *Sandbox) SecretVariables() (names []string) {
	for _, secret := range s.secrets {
		names = append(names, secret.variable())
	}
	return names
}
