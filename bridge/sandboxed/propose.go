package sandboxed

import (
	"cmp"
	"errors"
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
	OnHost  string          // why the server has to stay on the host; "" if it need not
	Unread  error           // why no sandbox can run its command, which may be changed
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
		p.addArgument(word, home)
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

// addCommand adds a program of the host that is run as it is, and is in no folder that an image has, too; or
// notes why no sandbox can run the command.
func (p *Proposal) addCommand(s config.Server, home string) {
	line, err := commandline.Parse(s.Command, s.Args)
	if forHost, ok := errors.AsType[*commandline.HostError](err); ok {
		p.OnHost = forHost.Why()
		return
	}
	if p.Unread = err; err == nil && isShellLine(s) {
		if fetches := fetching().FindString(s.Args[1]); fetches != "" {
			p.note("its command is a line of a shell: write %s as the command itself, so that toolcell fetches the packages and they stay the same", fetches)
		}
	}
	if err == nil && line.Kind == commandline.Command && filepath.IsAbs(s.Command) &&
		!slices.ContainsFunc(ofImages, func(dir string) bool {
			return strings.HasPrefix(s.Command, dir) && !strings.HasPrefix(s.Command, "/usr/local/")
		}) {
		p.addFolder(s.Command, home)
	}
}

// isShellLine reports whether the command of an entry is a line of a shell.
func isShellLine(s config.Server) bool {
	shells := []string{"sh", "bash", "dash", "zsh", "ash"}
	return slices.Contains(shells, filepath.Base(s.Command)) && len(s.Args) > 1 && (s.Args[0] == "-c" || s.Args[0] == "-lc")
}

// fetching finds a command in a line of a shell that fetches packages.
var fetching = text.Pattern(`\b(?:npx|bunx|uvx|pipx)\b`)

// NoteMissing notes that the sandbox has no program of this name, if the proposal does not show it.
func (p *Proposal) NoteMissing(program string) {
	if !slices.Contains(p.Mounts, program) {
		p.note("its sandbox has no program %s: name an image that has it, as in image = \"NAME\", or show its folder in mounts and write its whole path as the command", program)
	}
}

// secretName matches the names that variables with secrets usually have.
var secretName = regexp.MustCompile(`(?i)(^|_)(token|key|secret|password|passwd|pat|credentials?|auth|dsn)s?(_|$)`)

// addArgument adds what an argument names: the value of an option, or the words of a line of a shell.
func (p *Proposal) addArgument(arg, home string) {
	if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
		arg = value
	}
	if words := strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>", r) }); len(words) > 1 {
		if _, err := os.Stat(arg); err != nil { // it is no path with a space
			for _, word := range words {
				p.addWord(strings.Trim(word, `"'`), home)
			}
			return
		}
	}
	p.addWord(arg, home)
}

// addWord adds what a word names: an address, or something of the host's that is there.
func (p *Proposal) addWord(word, home string) {
	if ofSandbox().MatchString(word) || p.noteHost(word) {
		return
	}
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

// onHost are names of what a sandbox cannot give a server, with what each is.
var onHost = []struct {
	name func() *regexp.Regexp
	why  string
}{
	{text.Pattern(`(docker|podman|containerd|crio)\.sock`), "what can use the socket of a container service has all rights on the host"},
	{text.Pattern(`/run/dbus|^unix:(path|abstract)=|/run/user/[0-9]+/bus$`), "it is D-Bus, by which a server can use other programs of your session or system"},
	{text.Pattern(`keyring|[Kk]eychain|/run/user/[0-9]+/gnupg`), "it is a keychain, and a server that is shown one can read every key in it"},
	{text.Pattern(`^/dev/`), "it is a device, such as one on USB, and a sandbox has none of this host's"},
}

// ofSandbox are files in /dev that a sandbox has itself.
var ofSandbox = text.Pattern(`^/dev/(null|zero|full|random|urandom|tty|stdin|stdout|stderr|fd|shm|pts)(/|$)`)

// noteHost reports whether a word names something for which a server has to stay on the host, and notes why.
func (p *Proposal) noteHost(word string) bool {
	for _, part := range onHost {
		if part.name().MatchString(word) {
			p.OnHost = text.Printable("it names "+word, 200) + ": " + part.why
			return true
		}
	}
	return false
}

// addFolder adds a folder or file of the host.
func (p *Proposal) addFolder(at, home string) {
	at = filepath.Clean(at)
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
// gives already: box is what the policy says now. It is empty if the server's command has to be changed first.
func (p Proposal) Section(box *policy.Sandbox) string {
	switch {
	case p.OnHost != "":
		return fmt.Sprintf("# %s\n%s", p.OnHost, box.SectionOff())
	case p.Unread != nil:
		return ""
	}
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
