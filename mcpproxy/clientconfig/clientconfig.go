// Package clientconfig finds the user's MCP servers. It reads the config files of
// MCP clients, each in its dialect, and decides which files count, in which order,
// which need trust, and which entry of a name wins. It finds changes of the files.
package clientconfig

import (
	"github.com/toolcell/toolcell/internal/pyname"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// Options says where to look. The zero value of a field leaves that
// place out.
type Options struct {
	Home      string // for ~/MCPs, the files of the user's clients, and a leading ~/
	Dir       string // the project: its own files, and its entry in ~/.claude.json
	Extra     string // one more file, which wins over all others (TOOLCELL_SERVERS_CONFIG)
	AllowSelf bool   // list servers that start this program
	Self      string // the resolved path of this program's executable

	// Getenv reads the variables that ${VAR} names; nil is the environment of
	// this process. An empty value counts as unset.
	Getenv func(string) string

	// Trusted tells whether a file of the project may start commands. nil
	// trusts none. See Trust.
	Trusted func(file, sum string) TrustState
	// Values gives what the user set for the inputs of a file. See Values.
	Values func(file string) map[string]string
}

const (
	maxServers     = 1000 // over all files; more is a mistake, and each may become a process
	maxProblems    = 1000 // over all files; each is a row of servers list
	maxConfigFiles = 1000 // in one folder
)

// Discover reads every config file there is, in the order of candidates. For one
// name the first entry wins, and one server counts once, whatever files have it
// under whatever names. An entry that is broken does not own its name; one
// that is disabled does, so that a project can switch off a server of the user.
// Files of the project that are not trusted have no effect but to be listed.
func Discover(o Options) config.Config {
	d := collector{o: o, userDir: o.userDir(), owners: map[string]nameOwner{}, same: map[string]int{}}
	for _, p := range candidates(o) {
		if p.folder {
			d.readFolder(p)
		} else {
			d.readFile(p)
		}
	}
	d.reportProblems()
	names := make([]string, len(d.config.Servers))
	for i, s := range d.config.Servers {
		names[i] = s.Name
	}
	for i, alias := range pyname.Servers().Aliases(names) {
		d.config.Servers[i].Alias = alias
	}
	return d.config
}
