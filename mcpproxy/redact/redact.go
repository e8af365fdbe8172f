// Package redact removes a server's secrets from texts that leave this program.
package redact

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// minSecret is the least length of a value that is taken for a secret. Shorter
// ones (true, 8080, debug) would be found in every second text. A value whose name
// says that it is a secret, such as a PIN, may be as short as minNamed.
const minSecret, minNamed = 7, 4

// A Redactor removes values that only the server may see: of its environment, its headers,
// its address and its tokens. Error texts and the stderr of a server reach the code in the
// sandbox.
type Redactor struct {
	mu      sync.RWMutex
	names   map[string]string // value to the name that stands in for it
	texts   *strings.Replacer
	records map[string]string // the same of what is hidden on record
	record  *strings.Replacer
}

var secretFlag = text.Pattern(secretWord)

const secretWord = `(?i)(key|token|secret|password|passwd|credential|auth)`

// New returns a Redactor of what the entry of a server holds.
func New(s config.Server) *Redactor {
	hidden := &Redactor{names: map[string]string{}, records: map[string]string{}}
	if s.Command != "" {
		hidden.inherited(os.Environ())
	}
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		hidden.put(k, s.Env[k])
	}
	for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
		hidden.header(k, s.Headers[k])
	}
	hidden.arguments(s.Args)
	hidden.address(s.URL)
	if s.OAuth != nil {
		hidden.put("client secret", s.OAuth.ClientSecret)
		hidden.put("private key", s.OAuth.PrivateKey)
	}
	hidden.renew()
	return hidden
}

// inherited takes in secrets of our own environment, which a process gets from us
// (GITHUB_TOKEN). It cannot take in all of it: that has paths and names of users.
func (h *Redactor) inherited(environ []string) {
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); secretFlag().MatchString(name) && !filepath.IsAbs(value) {
			h.put(name, value)
		} else if strings.HasPrefix(name, "OTEL_EXPORTER_OTLP_") && strings.HasSuffix(name, "HEADERS") {
			h.collector(value)
		}
	}
}

// collector takes in the headers for a collector of OpenTelemetry, NAME=VALUE,NAME=VALUE with the
// values in percent-encoding, which have its key under any name.
func (h *Redactor) collector(headers string) {
	for pair := range strings.SplitSeq(headers, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		h.header(name, value)
		if plain, err := url.PathUnescape(value); err == nil {
			h.header(name, plain)
		}
	}
}

func (h *Redactor) header(name, value string) {
	h.put(name, value)
	if _, credentials, ok := strings.Cut(strings.TrimSpace(value), " "); ok { // "Bearer …"
		h.put(name, credentials)
	}
}

// arguments takes in what follows options such as --api-key, and what programs take that
// start others: variables (-e API_KEY=…), headers ("Authorization: …") and addresses.
func (h *Redactor) arguments(args []string) {
	for i, arg := range args {
		if strings.HasPrefix(arg, "-") {
			name, value, joined := strings.Cut(arg, "=")
			if !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				value = args[i+1]
			}
			if secretFlag().MatchString(name) {
				h.put(name, value)
			}
			if !joined {
				continue
			}
			arg = value
		}
		h.argument(arg)
	}
}

var (
	secretVariable = text.Pattern(`^(\w*` + secretWord + `\w*)=`)
	secretHeader   = text.Pattern(`^([\w-]*` + secretWord + `[\w-]*):`)
)

func (h *Redactor) argument(arg string) {
	if m := secretVariable().FindStringSubmatch(arg); m != nil {
		h.put(m[1], arg[len(m[0]):])
	}
	if m := secretHeader().FindStringSubmatch(arg); m != nil {
		h.header(m[1], arg[len(m[0]):])
	}
	if u, err := url.Parse(arg); err == nil && u.Host != "" {
		h.user(arg)
		h.query(u, secretFlag().MatchString) // another project is another server
	}
}

// address takes in the parts of a URL that services put keys into, decoded and as they are
// written.
func (h *Redactor) address(address string) {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return
	}
	h.user(address)
	h.query(u, func(string) bool { return true })
	for _, path := range []string{u.Path, u.EscapedPath()} {
		for part := range strings.SplitSeq(path, "/") {
			if len(part) >= 16 {
				h.put("path", part)
			}
		}
	}
}

// user takes in the password of an address, or a token that is the user's name.
func (h *Redactor) user(address string) {
	_, authority, _ := strings.Cut(address, "://")
	authority, _, _ = strings.Cut(authority, "/")
	name, written := "user", authority[:max(strings.LastIndexByte(authority, '@'), 0)]
	if _, password, ok := strings.Cut(written, ":"); ok {
		name, written = "password", password
	}
	h.put(name, written)
	if value, err := url.PathUnescape(written); err == nil {
		h.put(name, value)
	}
}

func (h *Redactor) query(u *url.URL, isSecret func(name string) bool) {
	for field := range strings.SplitSeq(u.RawQuery, "&") {
		name, written, _ := strings.Cut(field, "=")
		if !isSecret(name) {
			continue
		}
		h.put(name, written)
		if value, err := url.QueryUnescape(written); err == nil {
			h.put(name, value)
		}
	}
}

func (h *Redactor) put(name, value string) {
	value = strings.TrimSpace(value)
	if len(value) < minNamed || len(value) < minSecret && !secretFlag().MatchString(name) {
		return
	}
	onRecord := isSecret(name, value)
	quoted, _ := json.Marshal(value) // strings always encode
	for _, form := range append(base64Forms(value), value, url.QueryEscape(value), string(quoted[1:len(quoted)-1])) {
		if _, known := h.names[form]; !known {
			h.names[form] = "[" + name + "]"
		}
		if _, known := h.records[form]; onRecord && !known {
			h.records[form] = recorded(name)
		}
	}
}

// base64Forms returns how value looks inside of base64 text, such as that of
// "user:" and a password: three bytes make four characters, so it depends on
// where the value begins. Characters that its neighbors decide too are left out.
func base64Forms(value string) (forms []string) {
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + value))
		form := text[(before*8+5)/6 : (before+len(value))*8/6]
		if len(form) < minSecret {
			continue
		}
		forms = append(forms, form)
		if other := strings.NewReplacer("+", "-", "/", "_").Replace(form); other != form {
			forms = append(forms, other)
		}
	}
	return forms
}

// Add adds a value that came up later, such as a token. It may be called while
// others redact.
func (h *Redactor) Add(name, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, known := h.names[value]
	if _, onRecord := h.records[value]; !known || !onRecord {
		h.put(name, value)
		h.renew()
	}
}

func (h *Redactor) renew() { h.texts, h.record = replacer(h.names), replacer(h.records) }

// replacer returns what replaces values by names; a longer value goes before one that begins it.
func replacer(names map[string]string) *strings.Replacer {
	values := slices.Sorted(maps.Keys(names))
	slices.SortStableFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, names[v])
	}
	return strings.NewReplacer(pairs...)
}

// Text returns text without the secrets.
func (h *Redactor) Text(text string) string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.texts.Replace(text)
}

// credential is in the names of values that open something by themselves. Not all
// values of an entry do: the ID of a client is part of each address to log in at.
var credential = text.Pattern(`(?i)(key|token|secret|passw|credential|authorization)`)

// Secret returns the name of a credential that text has in it, in brackets, or "". It is
// for what cannot be redacted and stay of use, such as an address to open.
func (h *Redactor) Secret(text string) (name string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, value := range slices.Sorted(maps.Keys(h.names)) {
		name := h.names[value]
		if credential().MatchString(name) && !strings.HasPrefix(value, "http") && strings.Contains(text, value) {
			return name
		}
	}
	return ""
}

// Error returns err with a text without secrets; what it wraps can still
// be asked for.
func (h *Redactor) Error(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); h.Text(text) != text {
		return &hiddenError{h.Text(text), err}
	}
	return err
}

type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.err }
