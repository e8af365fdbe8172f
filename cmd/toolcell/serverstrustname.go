package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
	"github.com/toolcell/toolcell/mcpproxy/rights"
)

// trusting is what servers trust and servers untrust need to know of servers.
type trusting struct {
	servers []config.Server
	rules   *policy.Enforcer
	store   rights.Store
}

func newTrusting(o Options, found *discovered) *trusting {
	return &trusting{found.config.Servers, loadPolicy(o.Settings, shellLogger(o)).NewEnforcer(), rights.Open(o.Settings.Dirs.Rights())}
}

// serverRights is what a row says of a server.
type serverRights struct {
	Server string   `json:"server"`
	Rights []string `json:"rights"`         // that the policy gives it
	Diff   string   `json:"diff,omitempty"` // from what was accepted before
}

// isServer reports whether an argument is the name of a server. A path, and a file that is a project's, is
// not.
func (t *trusting) isServer(arg string) bool {
	_, known := t.find(arg)
	if strings.ContainsRune(arg, filepath.Separator) {
		return known
	}
	file, err := filepath.Abs(arg)
	if err != nil || clientconfig.ProjectOf(file) != "" {
		return false
	}
	if _, err := os.Lstat(file); err == nil {
		return known
	}
	return known || filepath.Ext(arg) == ""
}

// find finds a server by its name, or else by its alias.
func (t *trusting) find(name string) (config.Server, bool) {
	i := slices.IndexFunc(t.servers, func(s config.Server) bool { return s.Name == name })
	if i < 0 && name != "" {
		i = slices.IndexFunc(t.servers, func(s config.Server) bool { return s.Alias == name })
	}
	if i < 0 {
		return config.Server{}, false
	}
	return t.servers[i], true
}

// trustServer accepts the entry of a server for what the policy gives it.
func trustServer(t *trusting, name string) (*trustRow, string, error) {
	server, known := t.find(name)
	if !known {
		return nil, "", fmt.Errorf("trusting %q: there is neither a server nor a file of this name; toolcell servers list shows the servers", text.Printable(name, 200))
	}
	name = server.Name // it may have been the alias
	box, err := t.rules.Sandbox(policy.Server{Name: server.Name, Alias: server.Alias})
	if err != nil {
		return nil, "", fmt.Errorf("trusting %q: %w", name, err)
	}
	row := &trustRow{File: server.Source, Trusted: true, serverRights: &serverRights{Server: name, Rights: []string{}}}
	given := rights.Of(server, box)
	if len(given) == 0 {
		return row, fmt.Sprintf("nothing to do: the policy gives the server %q nothing that has to be accepted\n", name), nil
	}
	diff, before, err := t.store.Diff(server, box)
	if err != nil {
		return nil, "", fmt.Errorf("trusting %q: %w", name, err)
	}
	row.Rights, row.Diff, row.Changed = given, diff, diff != ""
	if !row.Changed {
		return row, fmt.Sprintf("nothing to do: the server %q is as you accepted it\n", name), nil
	}
	if err := t.store.Accept(server, box); err != nil {
		return nil, "", fmt.Errorf("trusting %q: %w", name, err)
	}
	return row, describeTrusted(server, box, row, before), nil
}

// describeTrusted says what was accepted.
func describeTrusted(server config.Server, box *policy.Sandbox, row *trustRow, before bool) string {
	var lines strings.Builder
	by := "the policy gives it"
	if box.Section != "" {
		by = text.Visible(box.Section) + " of the policy gives it"
	}
	fmt.Fprintf(&lines, "%s may have what %s, as long as its entry stays as it is now:\n", text.Visible(server.Name), by)
	for _, right := range row.Rights {
		fmt.Fprintf(&lines, "    %s\n", right)
	}
	if before {
		lines.WriteString("what has changed since you accepted it:\n")
	} else {
		lines.WriteString("its entry:\n")
	}
	for line := range strings.Lines(row.Diff) {
		fmt.Fprintf(&lines, "    %s", line)
	}
	return lines.String()
}

// untrustServer forgets all that was accepted for a server's name, which may be of none by now.
func untrustServer(t *trusting, name string) (*trustRow, string, error) {
	server, known := t.find(name)
	was, err := t.store.Forget(name)
	if known && !was && err == nil && name != server.Name { // it is an alias
		name = server.Name
		was, err = t.store.Forget(name)
	}
	row := &trustRow{File: server.Source, serverRights: &serverRights{Server: name, Rights: []string{}}}
	if err != nil {
		return nil, "", fmt.Errorf("taking trust from %q: %w", name, err)
	}
	if row.Changed = was; !was {
		return row, fmt.Sprintf("nothing to do: nothing was accepted for a server %s\n", text.Visible(name)), nil
	}
	return row, fmt.Sprintf("no longer accepted: what the policy gives the server %s\n", text.Visible(name)), nil
}
