package policy

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// sandboxKeys are the keys of a section about the sandbox that a server runs in. All but Sandbox
// give the server something, and stand in the section of one server alone.
type sandboxKeys struct {
	Sandbox SandboxMode        `json:"sandbox"`
	Image   imageName          `json:"image"`
	Network *hosts.ServerRules `json:"network"`
	Mounts  mountList          `json:"mounts"`
	Memory  memorySize         `json:"memory"`
	CPUs    processors         `json:"cpus"`
	PIDs    processCount       `json:"pids"`
	Secrets secretList         `json:"secrets"`
	Install *hosts.ServerRules `json:"install"`
}

// giving returns the names of the keys that are there and need the section of one server.
func (k *sandboxKeys) giving() (keys []string) {
	for _, key := range []struct {
		name  string
		there bool
	}{
		{"image", k.Image != ""},
		{"network", k.Network != nil},
		{"mounts", k.Mounts != nil},
		{"memory", k.Memory != 0},
		{"cpus", k.CPUs != 0},
		{"pids", k.PIDs != 0},
		{"secrets", k.Secrets != nil},
		{"install", k.Install != nil},
	} {
		if key.there {
			keys = append(keys, key.name)
		}
	}
	return keys
}

// UnmarshalJSONFrom reads a section.
func (sec *section) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type fields section
	if err := json.UnmarshalDecode(d, (*fields)(sec)); err != nil {
		return err
	}
	at := d.StackPointer() // of the section: /default, or a name below /servers
	isName := at.Parent() == "/servers" && rule.Glob(at.LastToken()).IsName()
	if keys := sec.giving(); len(keys) > 0 && !isName {
		return toml.KeyError(d, keys[0], errors.New("it gives a server something, so it must be in the section of one server, as [servers.github]"))
	}
	for _, s := range sec.Secrets {
		if host := s.ofHost.Host(); host != "" && (sec.Network == nil || !sec.Network.Allows(host)) {
			return toml.KeyError(d, "secrets", fmt.Errorf("%s is for the host %q, which network does not allow", s.variable(), host))
		}
	}
	return nil
}

// SandboxMode is whether a server runs in a sandbox; "" is what its entry's origin says.
type SandboxMode string

// The modes.
const (
	SandboxOn  SandboxMode = "on"
	SandboxOff SandboxMode = "off"
)

// UnmarshalText takes one of the modes.
func (m *SandboxMode) UnmarshalText(word []byte) (err error) {
	*m, err = rule.Choice(word, SandboxOff, SandboxOn)
	return err
}

// An imageName names an image, in the forms of the setting image.
type imageName string

const maxImageName = 512

// UnmarshalText takes a name. Whether there is such an image is known when it is opened.
func (i *imageName) UnmarshalText(name []byte) error {
	s := string(name)
	if s == "" || len(s) > maxImageName || s[0] == '-' || strings.ContainsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }) {
		return fmt.Errorf("%q is not the name of an image, such as node:24-slim", text.Bound(s, 80))
	}
	*i = imageName(s)
	return nil
}

const (
	maxMounts    = 20
	maxSecrets   = 50
	maxMountPath = 1024 // bytes, of each path
)

// A mountList is a list of mounts, each with a target of its own.
type mountList []mount

// UnmarshalJSONFrom reads the list.
func (l *mountList) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if k := d.PeekKind(); k != jsontext.KindBeginArray {
		return toml.KindError("a list of tables such as { source = \"~/notes\", target = \"/notes\" }")
	}
	if err := json.UnmarshalDecode(d, (*[]mount)(l)); err != nil {
		return err
	}
	if len(*l) > maxMounts {
		return fmt.Errorf("it lists %d mounts; the most is %d", len(*l), maxMounts)
	}
	for i, m := range *l {
		if slices.ContainsFunc((*l)[:i], func(other mount) bool { return other.Target == m.Target }) {
			return fmt.Errorf("two mounts have the target %q", m.Target)
		}
		if i := slices.IndexFunc(*l, func(other mount) bool { return strings.HasPrefix(m.Target, other.Target+"/") }); i >= 0 {
			return fmt.Errorf("the target %q is inside of the target %q: a mount cannot be in another", text.Bound(m.Target, 120), text.Bound((*l)[i].Target, 120))
		}
	}
	return nil
}

// A mount is a folder or file of the host that a server sees.
type mount struct {
	Source string `json:"source"` // absolute, or begins with ~/
	Target string `json:"target"`
	Write  bool   `json:"write"`
}

// UnmarshalJSONFrom reads a mount. Its target is the source's own path if it names none.
func (m *mount) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type fields mount
	if err := json.UnmarshalDecode(d, (*fields)(m)); err != nil {
		return err
	}
	full, err := m.fullSource()
	if err != nil {
		return toml.KeyError(d, "source", err)
	}
	key := "target"
	if m.Target == "" {
		key, m.Target = "source", full
	}
	if err := checkMountTarget(m.Target); err != nil {
		return toml.KeyError(d, key, err)
	}
	return nil
}

// fullSource returns the path on this host.
func (m *mount) fullSource() (string, error) {
	full := m.Source
	if rest, inHome := strings.CutPrefix(full, "~/"); inHome {
		home, err := userHome()
		if err != nil {
			return "", fmt.Errorf("%q: %w", text.Bound(m.Source, 120), err)
		}
		full = home + "/" + rest
	}
	switch {
	case m.Source == "":
		return "", errors.New("a mount needs a source, a path of this host")
	case len(full) > maxMountPath || strings.ContainsFunc(full, unicode.IsControl):
		return "", fmt.Errorf("%q is no path: it has control characters, or more than %d bytes", text.Bound(m.Source, 120), maxMountPath)
	case !path.IsAbs(full):
		return "", fmt.Errorf("%q must be an absolute path, or begin with ~/", text.Bound(m.Source, 120))
	case slices.Contains(strings.Split(full, "/"), ".."):
		return "", fmt.Errorf("%q has .. in it", text.Bound(m.Source, 120))
	}
	return path.Clean(full), nil
}

// keptPlaces are those of the sandbox itself.
var keptPlaces = []string{"/proc", "/sys", "/dev", "/run/toolcell"}

// serverHome is the HOME of a server, as oci/spec has it.
const serverHome = "/home/server"

// checkMountTarget checks a path in the sandbox.
func checkMountTarget(target string) error {
	shown := text.Bound(target, 120)
	switch {
	case len(target) > maxMountPath || strings.ContainsFunc(target, unicode.IsControl):
		return fmt.Errorf("%q is no path: it has control characters, or more than %d bytes", shown, maxMountPath)
	case !path.IsAbs(target) || path.Clean(target) != target:
		return fmt.Errorf("%q must be an absolute path without . or .. and without a / at its end", shown)
	case target == "/":
		return errors.New("nothing can be mounted at /, where the sandbox's own files are")
	}
	for _, kept := range keptPlaces {
		if overlap(target, kept) {
			return fmt.Errorf("nothing can be mounted at %q: the sandbox needs %s unchanged", shown, kept)
		}
	}
	if overlap(target, serverHome) {
		return fmt.Errorf("nothing can be mounted at %q: %s is the server's HOME; name another target", shown, serverHome)
	}
	return nil
}

// overlap reports whether one of two paths is the other, or in it.
func overlap(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/")
}

// A memorySize is a number of bytes.
type memorySize int64

// minMemory is what a sandbox needs to start.
const minMemory = 16 << 20

// UnmarshalJSONFrom takes a number, or a string of one with k, m or g for powers of 1024.
func (m *memorySize) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	size := string(v)
	switch v.Kind() {
	case jsontext.KindString:
		size = unquoted(v)
	case jsontext.KindNumber:
	default:
		return toml.KindError(`a size such as "1GiB"`)
	}
	n, err := text.ParseSize(strings.ReplaceAll(size, " ", ""))
	if err == nil && n < minMemory {
		err = fmt.Errorf("too small: a server needs at least %s", text.Size(minMemory))
	}
	if err != nil {
		return fmt.Errorf("%q: %w", text.Bound(size, 40), err)
	}
	*m = memorySize(n)
	return nil
}

// processors are how much of this host's processors a server gets.
type processors float64

// UnmarshalJSONFrom takes a number.
func (c *processors) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	if v.Kind() != jsontext.KindNumber {
		return toml.KindError("a number such as 1.5")
	}
	n, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !(n >= 0.01 && n <= 10000) {
		return errors.New("it must be a number of processors from 0.01 to 10000, such as 1.5")
	}
	*c = processors(n)
	return nil
}

// A processCount is how many processes and threads a server may have.
type processCount int

// UnmarshalJSONFrom takes a whole number.
func (c *processCount) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	var n int
	if err := json.UnmarshalDecode(d, &n); err != nil {
		return err
	}
	if n < 1 || n > math.MaxInt32 {
		return errors.New("it must be a number of processes from 1, such as 256")
	}
	*c = processCount(n)
	return nil
}

// A secretList names variables whose values a server or a host gets, each once for a host.
type secretList []secret

// UnmarshalJSONFrom reads the list.
func (l *secretList) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginArray {
		return toml.KindError(`a list of names of variables and of tables such as { env = "TOKEN", host = "api.example.com" }`)
	}
	if err := json.UnmarshalDecode(d, (*[]secret)(l)); err != nil {
		return err
	}
	if len(*l) > maxSecrets {
		return fmt.Errorf("it lists %d secrets; the most is %d", len(*l), maxSecrets)
	}
	for i, s := range *l {
		for _, other := range (*l)[:i] {
			switch {
			case other.variable() != s.variable():
			case other.plain != s.plain:
				return fmt.Errorf("the server would get both the value of %s and a placeholder for it", s.variable())
			case s.plain != "" || other.ofHost.Host() == s.ofHost.Host() && strings.EqualFold(other.ofHost.Header(), s.ofHost.Header()):
				return fmt.Errorf("%s is there twice", s.variable())
			}
		}
	}
	return nil
}

// A secret is a variable whose value the server gets, or that of a host.
type secret struct {
	plain  string // the variable; "" if it is for a host
	ofHost hosts.ServerSecret
}

// variable is the variable that has the value.
func (s secret) variable() string {
	if s.plain != "" {
		return s.plain
	}
	return s.ofHost.Variable()
}

// UnmarshalJSONFrom takes the name of a variable or a table.
func (s *secret) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case jsontext.KindBeginObject:
		return json.UnmarshalDecode(d, &s.ofHost)
	case jsontext.KindString:
	default:
		return toml.KindError(`the name of a variable, or a table such as { env = "TOKEN", host = "api.example.com" }`)
	}
	if err := json.UnmarshalDecode(d, &s.plain); err != nil {
		return err
	}
	if !rule.IsVariable(s.plain) {
		return fmt.Errorf("%q is not a name for a variable", text.Bound(s.plain, 40))
	}
	return nil
}
