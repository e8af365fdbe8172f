package mcpproxy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// ServerStatus is the state of one configured server.
type ServerStatus struct {
	Name        string           `json:"name"`
	Alias       string           `json:"alias,omitempty"`
	Transport   config.Transport `json:"transport,omitempty"`
	Source      string           `json:"source,omitempty"` // the file that it is from
	Client      string           `json:"client,omitempty"` // the MCP client whose file that is
	Also        []string         `json:"also,omitempty"`   // further files that have the same server
	Where       string           `json:"where,omitempty"`  // it runs: OnHost, InSandbox or Remote; empty for one that was left out
	Status      string           `json:"status"`           // idle, starting, ready, failed (in an earlier process too), or as of a Problem: skipped, disabled, untrusted or needs_value
	Description string           `json:"description,omitempty"`
	Error       string           `json:"error,omitempty"`
	Tools       int              `json:"tools,omitempty"`   // how many, once known
	Partial     string           `json:"partial,omitempty"` // why the server may have more
}

// A snapshot is one Config made ready for use. It is replaced, never changed.
type snapshot struct {
	config    config.Config
	upstreams []*upstream
	byKey     map[string]*upstream
}

// newSnapshot makes a Config ready for use. It takes over from before what can stay.
func newSnapshot(p *Proxy, cfg config.Config, before []*upstream) snapshot {
	states, aliases := map[string]*upstreamState{}, map[string]string{}
	for _, u := range before {
		states[u.identity] = u.upstreamState
		aliases[u.server.Name] = u.server.Alias
	}
	cfg.Servers = keepAliases(cfg.Servers, aliases)
	now := snapshot{config: cfg, byKey: map[string]*upstream{}}
	for _, s := range cfg.Servers {
		u := &upstream{server: s, identity: s.Fingerprint()}
		u.upstreamState = states[u.identity]
		delete(states, u.identity) // each for one
		if u.upstreamState == nil {
			u.upstreamState = newUpstreamState(p, s)
		}
		now.upstreams = append(now.upstreams, u)
		now.byKey[s.Name] = u
	}
	for _, u := range now.upstreams { // a name goes before another's alias
		if _, ok := now.byKey[u.server.Alias]; !ok {
			now.byKey[u.server.Alias] = u
		}
	}
	return now
}

// keepAliases returns the servers with the aliases that those of the same name
// had before, except where another server has such a name now: a name in code is that
// server's. New ones get another where theirs is taken.
func keepAliases(servers []config.Server, before map[string]string) []config.Server {
	if len(before) == 0 {
		return servers
	}
	servers = slices.Clone(servers)
	taken, kept := map[string]bool{}, map[int]bool{}
	for _, s := range servers {
		taken[s.Name] = true
	}
	for i, s := range servers {
		switch alias, ok := before[s.Name]; {
		case s.Alias == s.Name:
		case ok && (alias == s.Name || !taken[alias]):
			servers[i].Alias = alias
		default:
			continue
		}
		kept[i], taken[servers[i].Alias] = true, true
	}
	for i, s := range servers {
		if kept[i] {
			continue
		}
		if taken[s.Alias] {
			servers[i].Alias = pyname.Server(s.Name, taken)
		}
		taken[servers[i].Alias] = true
	}
	return servers
}

// upstream finds a server by name or alias.
func (now snapshot) upstream(nameOrAlias string) (*upstream, error) {
	if u, ok := now.byKey[nameOrAlias]; ok && nameOrAlias != "" {
		return u, nil
	}
	return nil, noServer(nameOrAlias, now.config.Servers, now.config.Problems)
}

// noServer explains why a server cannot be used, or names those that can.
func noServer(name string, servers []config.Server, problems []config.Problem) error {
	for _, p := range problems {
		if p.Server == name {
			return fmt.Errorf("server %q cannot be used: %s (%s)", name, p.Reason, p.Source)
		}
	}
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	unknown := &UnknownServerError{Name: text.Printable(name, config.MaxNameLength), Known: names}
	for _, p := range problems {
		if p.Server == "" && !p.Skipped {
			unknown.Unread = append(unknown.Unread, p)
		}
	}
	return unknown
}

// An UnknownServerError says that there is no server of a name. Its text is for code; a
// shell has another command that lists them.
type UnknownServerError struct {
	Name   string
	Known  []string
	Unread []config.Problem // files that could not be read: it may be in one of them
}

func (e *UnknownServerError) Error() string {
	said := []string{e.Describe("runtime.discovered_servers()")}
	for _, p := range e.Unread[:min(len(e.Unread), maxUnread)] {
		said = append(said, "not used: "+p.String())
	}
	return strings.Join(said, "; ")
}

// Describe returns the text of the error without the files that could not be read.
// lister is what lists the servers that do not fit into it.
func (e *UnknownServerError) Describe(lister string) string {
	said := fmt.Sprintf("there is no server %q", e.Name)
	if len(e.Known) == 0 {
		return said + ": no servers are configured"
	}
	if meant := text.Meant(e.Name, e.Known, 3); meant != "" {
		said += fmt.Sprintf("; did you mean %q? Servers: ", meant)
	} else {
		said += "; servers: "
	}
	said += text.QuoteList(e.Known, maxNamed)
	if len(e.Known) > maxNamed {
		said += " (" + lister + " lists them)"
	}
	return said
}

// How many servers, and files, an error names.
const (
	maxNamed  = 20
	maxUnread = 3
)

// statuses returns the state of every server, and after them the entries left out.
func (now snapshot) statuses(sandboxed func(config.Server) bool) []ServerStatus {
	all := make([]ServerStatus, 0, len(now.upstreams)+len(now.config.Problems))
	for _, u := range now.upstreams {
		state, failure := u.status()
		st := ServerStatus{
			Name: u.server.Name, Alias: u.server.Alias, Transport: u.server.Transport,
			Source: u.server.Source, Client: u.server.Client, Also: u.server.Also, Where: u.where(sandboxed), Status: state,
			Description: u.described().Description, Tools: u.record.Count(), Partial: u.record.Info().Partial,
		}
		if failure != nil {
			st.Error = WithoutOutput(failure).Error()
		}
		all = append(all, st)
	}
	for _, pr := range now.config.Problems {
		if pr.Server != "" && pr.Status != config.StatusSame {
			all = append(all, ServerStatus{
				Name: pr.Server, Source: pr.Source, Client: pr.Client, Transport: pr.Transport, Status: cmp.Or(pr.Status, config.StatusSkipped), Error: pr.Reason,
			})
		}
	}
	return all
}
