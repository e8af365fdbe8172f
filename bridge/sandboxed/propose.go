package sandboxed

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/commandline"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// A Proposal is a section of the policy with which a server may work in a sandbox, as far as its entry
// and what its sandbox refused can tell. A person reads it before it counts.
type Proposal struct {
	Server  string
	Mounts  []string        // folders and files of the host, to be read
	Network []string        // in the form of the policy
	Secrets []policy.Secret // a Host is the one that may get the value, "" if it is not known
	Notes   []string        // what to look at
}

// Propose reads the entry of a server: the folders and addresses in its arguments and its environment.
// refused are hosts that its sandbox refused, as HOST:PORT.
func Propose(s config.Server, refused []string) Proposal {
	p := Proposal{Server: s.Name}
	home, _ := os.UserHomeDir()
	p.addCommand(s, home)
	for _, word := range s.Args {
		if _, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
			word = value
		}
		p.addWord(word, home)
	}
	var tokens []string
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if secretName.MatchString(name) {
			tokens = append(tokens, name)
			p.addAddress(s.Env[name]) // a database's URL has its password
			continue
		}
		p.addWord(s.Env[name], home)
	}
	if s.Dir != "" {
		p.addFolder(s.Dir, home)
	}
	for _, at := range refused {
		p.addHost(at)
	}
	for _, name := range tokens {
		secret := policy.Secret{Env: name}
		if len(p.Network) == 1 && !strings.HasPrefix(p.Network[0], "tcp:") {
			secret.Host = p.Network[0]
		}
		p.Secrets = append(p.Secrets, secret)
	}
	return p
}

// ofImages are folders that an image has itself.
var ofImages = []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"}

// addCommand adds a program of the host that is run as it is, and is in no folder that an image has, too.
func (p *Proposal) addCommand(s config.Server, home string) {
	line, err := commandline.Parse(s.Command, s.Args)
	if err == nil && line.Kind == commandline.Command && filepath.IsAbs(s.Command) &&
		!slices.ContainsFunc(ofImages, func(dir string) bool {
			return strings.HasPrefix(s.Command, dir) && !strings.HasPrefix(s.Command, "/usr/local/")
		}) {
		p.addFolder(s.Command, home)
	}
}

// secretName matches the names that variables with secrets usually have.
var secretName = regexp.MustCompile(`(?i)(^|_)(token|key|secret|password|passwd|pat|credentials?|auth|dsn)s?(_|$)`)

// addWord adds what a word names: an address, or something of the host's that is there.
func (p *Proposal) addWord(word, home string) {
	if strings.Contains(word, "://") {
		p.addAddress(word)
		return
	}
	if rest, ok := strings.CutPrefix(word, "~/"); ok && home != "" {
		word = filepath.Join(home, rest)
	}
	if filepath.IsAbs(word) {
		p.addFolder(word, home)
	}
}

// onHost are files by which a server uses what a sandbox cannot give it.
var onHost = []string{"docker.sock", "podman.sock", "containerd.sock", "/run/dbus", "/var/run/dbus", "/dev/", "keyring"}

// addFolder adds a folder or file of the host.
func (p *Proposal) addFolder(at, home string) {
	at = filepath.Clean(at)
	if i := slices.IndexFunc(onHost, func(part string) bool { return strings.Contains(at, part) }); i >= 0 {
		p.note("%s is for a server on the host alone: leave sandbox = \"off\" for it", at)
		return
	}
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return // a path inside of something else, or of a file that the server makes
	case at == "/" || at == home:
		p.note("it names %s, which is too much to show: name the folders in it that it needs in mounts", at)
		return
	case !info.IsDir() && !info.Mode().IsRegular():
		p.note("it names %s, which is neither a folder nor a file", at)
		return
	}
	if !slices.Contains(p.Mounts, at) {
		p.Mounts = append(p.Mounts, at)
	}
}

// databases are the ports of the schemes that databases have in their addresses.
var databases = map[string]string{
	"postgres": "5432", "postgresql": "5432", "mysql": "3306", "mariadb": "3306", "redis": "6379", "rediss": "6379",
	"mongodb": "27017", "amqp": "5672", "amqps": "5671", "smtp": "25", "smtps": "465", "imap": "143", "imaps": "993",
	"ssh": "22", "nats": "4222", "clickhouse": "9000", "neo4j": "7687", "bolt": "7687", "ldap": "389", "ldaps": "636",
}

// addAddress adds the host of a URL.
func (p *Proposal) addAddress(address string) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Hostname() == "" {
		return
	}
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname())
	scheme, _, _ = strings.Cut(scheme, "+") // postgresql+asyncpg
	port := u.Port()
	switch ownPort := databases[scheme]; {
	case scheme == "http" || scheme == "https" || scheme == "ws" || scheme == "wss":
		usual := cmp.Or(map[string]string{"http": "80", "ws": "80"}[scheme], "443")
		if port != "" && port != usual {
			host = net.JoinHostPort(host, port)
		}
		p.addNetwork(host)
	case ownPort != "":
		p.addNetwork("tcp:" + net.JoinHostPort(host, cmp.Or(port, ownPort)))
	}
}

// addHost adds HOST:PORT as the policy writes it.
func (p *Proposal) addHost(at string) {
	host, port, err := net.SplitHostPort(at)
	switch {
	case err != nil:
		p.addNetwork(at)
	case port == "443" || port == "80":
		p.addNetwork(host)
	default:
		p.addNetwork(at)
	}
}

func (p *Proposal) addNetwork(entry string) {
	host := strings.TrimPrefix(entry, "tcp:")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if slices.Contains(netguard.Loopback, host) || net.ParseIP(host) != nil {
		p.note("%s is an address of this host or of its network: a server in a sandbox reaches it only if private in its network names it, too", entry)
	}
	if !slices.Contains(p.Network, entry) {
		p.Network = append(p.Network, entry)
	}
}

func (p *Proposal) note(format string, args ...any) {
	if note := text.Printable(fmt.Sprintf(format, args...), 300); !slices.Contains(p.Notes, note) {
		p.Notes = append(p.Notes, note)
	}
}

// Section writes the proposal as it would stand in policy.toml, together with what the server's section
// gives already: box is what the policy says now.
func (p Proposal) Section(box *policy.Sandbox) string {
	section, wrong := box.SectionWith(p.Mounts, p.Network, p.Secrets)
	for _, err := range wrong {
		p.note("left out: %v", err)
	}
	var b strings.Builder
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "# %s\n", note)
	}
	return b.String() + section
}
