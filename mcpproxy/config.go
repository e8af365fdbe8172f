package mcpproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// Server is one of the user's MCP servers, as a config file describes it.
type Server struct {
	Name      string
	Alias     string // the Python identifier scripts know it by, unique in one Config
	Transport Transport

	// Of a server over stdio.
	Command string
	Args    []string
	Env     map[string]string // added to the environment of this process
	Dir     string            // "cwd" in the file; relative to the directory this process runs in

	// Of a remote server.
	URL     string
	Headers map[string]string // sent with every request
	OAuth   *OAuth            // what the file says of it; the rest is found out

	// What the client's file says of the tools: nil allows all.
	AllowTools, DenyTools []string
	StartTimeout          time.Duration // 0 is the program's own
	CallTimeout           time.Duration // 0 is the program's own

	Description string
	Source      string   // the file it came from
	Client      string   // the MCP client whose file that is, such as "claude"
	Also        []string // further files that have the same server
}

// A Transport is how a server is spoken to.
type Transport string

// The transports. Remote is a URL of which the file does not say which of the
// two it is: streamable HTTP is tried first, then SSE.
const (
	Stdio  Transport = "stdio"
	HTTP   Transport = "http"
	SSE    Transport = "sse"
	Remote Transport = "remote"
)

// OAuth is a client that the user registered with the server beforehand.
type OAuth struct {
	ClientID, ClientSecret string
	Scopes                 []string
}

// fingerprint tells whether two entries are one server that is started or
// reached alike: it is what a warm connection and the catalogue on disk are
// kept by. It is a digest, as entries have secrets.
func (s Server) fingerprint() string {
	s.Alias, s.Description, s.Source, s.Client, s.Also = "", "", "", "", nil
	text, err := json.Marshal(s) // maps in order of their keys
	if err != nil {
		panic("mcpproxy: " + err.Error() + ": give Server only fields that JSON has")
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Problem is a file or an entry that gave no server, by name and with the
// reason. Server is empty when the whole file is meant.
type Problem struct {
	Source  string `json:"source"`
	Server  string `json:"server,omitempty"`
	Reason  string `json:"reason"`
	Skipped bool   `json:"skipped,omitempty"` // left out on purpose (disabled, or this program itself): nothing to mend
}

// String returns the problem as one line for a person.
func (p Problem) String() string {
	if p.Server == "" {
		return fmt.Sprintf("%s: %s", p.Source, p.Reason)
	}
	if p.Source == "" {
		return fmt.Sprintf("server %q: %s", p.Server, p.Reason)
	}
	return fmt.Sprintf("%s: server %q: %s", p.Source, p.Server, p.Reason)
}

// Config is what discovery found: the servers, in order of precedence, and
// everything it had to leave out.
type Config struct {
	Servers  []Server
	Problems []Problem
}

// DiscoverOptions says where to look. The zero value of a field leaves that
// place out.
type DiscoverOptions struct {
	Home      string // for ~/MCPs, ~/.claude.json and a leading ~/
	Dir       string // the project: its .mcp.json, and its entry in ~/.claude.json
	Extra     string // one more file, which wins over all others (MCP_SERVERS_CONFIG)
	AllowSelf bool   // list servers that start this program
	Self      string // the resolved path of this program's executable

	// Getenv reads the variables that ${VAR} names; nil is the environment of
	// this process. An empty value counts as unset.
	Getenv func(string) string
}

const (
	maxServers     = 1000 // over all files; more is a mistake, and each may become a process
	maxConfigFiles = 1000 // in ~/MCPs
)

// Discover reads every config file there is. For one name the first entry
// wins: Extra, then .mcp.json, then ~/MCPs/*.json in order of file name, then
// ~/.claude.json with the project's own servers before the user's. An entry
// that is broken does not claim its name; one that is disabled does, so that a
// project can switch off a server of the user.
func Discover(o DiscoverOptions) Config {
	d := discovery{o: o, env: lookup(o.Getenv), seen: map[string]bool{}, aliases: map[string]bool{}}
	if o.Extra != "" {
		d.file(d.absolute(o.Extra), required|bareEntry)
	}
	if o.Dir != "" {
		d.file(filepath.Join(o.Dir, ".mcp.json"), 0)
	}
	if o.Home != "" {
		d.folder(filepath.Join(o.Home, "MCPs"))
		d.file(filepath.Join(o.Home, ".claude.json"), claudeFile)
	}
	return d.config
}

func lookup(getenv func(string) string) func(string) (string, bool) {
	if getenv == nil {
		getenv = os.Getenv
	}
	return func(name string) (string, bool) {
		v := getenv(name)
		return v, v != ""
	}
}

// discovery is the state of one Discover.
type discovery struct {
	o       DiscoverOptions
	env     func(string) (string, bool)
	seen    map[string]bool // names that are claimed
	aliases map[string]bool
	config  Config
}

// absolute resolves a path the user gave in a setting.
func (d *discovery) absolute(path string) string {
	path = d.expandHome(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.o.Dir, path)
	}
	return path
}

func (d *discovery) expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && d.o.Home != "" {
		return filepath.Join(d.o.Home, rest)
	}
	return path
}

func (d *discovery) folder(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if !os.IsNotExist(err) {
			d.problem(dir, "", "reading the folder: "+reason(err))
		}
		return
	}
	var names []string
	for _, e := range entries {
		if n := e.Name(); strings.HasSuffix(n, ".json") && !strings.HasPrefix(n, ".") {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	if len(names) > maxConfigFiles {
		d.problem(dir, "", fmt.Sprintf("holds more than %d files; the rest is left out", maxConfigFiles))
		names = names[:maxConfigFiles]
	}
	for _, n := range names {
		d.file(filepath.Join(dir, n), bareEntry)
	}
}

func (d *discovery) problem(source, server, reason string) {
	d.config.Problems = append(d.config.Problems, Problem{Source: source, Server: server, Reason: reason})
}

func (d *discovery) skip(source, server, reason string) {
	d.config.Problems = append(d.config.Problems, Problem{Source: source, Server: server, Reason: reason, Skipped: true})
}

// add takes one entry of a file, whatever is in it.
func (d *discovery) add(source, name string, raw []byte) {
	if err := checkName(name); err != nil {
		d.problem(source, printable(name, 64), err.Error())
		return
	}
	if d.seen[name] {
		return
	}
	s, disabled, err := d.parseEntry(raw)
	switch {
	case err != nil:
		d.problem(source, name, err.Error())
	case disabled:
		d.seen[name] = true
		d.skip(source, name, "disabled")
	case !d.o.AllowSelf && d.startsSelf(s):
		d.skip(source, name, "skipped: this program itself")
	case len(d.config.Servers) == maxServers:
		d.problem(source, name, fmt.Sprintf("left out: there are more than %d servers", maxServers))
	default:
		d.seen[name] = true
		s.Name, s.Source, s.Alias = name, source, serverAlias(name, d.aliases)
		d.config.Servers = append(d.config.Servers, s)
	}
}
