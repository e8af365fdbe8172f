// Package redact removes a server's secrets from texts that leave this program.
package redact

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

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
	mu    sync.RWMutex
	names map[string]string // value to the name that stands in for it
	texts *strings.Replacer
}

var secretFlag = regexp.MustCompile(`(?i)(key|token|secret|password|passwd|credential|auth)`)

// New returns a Redactor of what the entry of a server holds.
func New(s config.Server) *Redactor {
	hidden := &Redactor{names: map[string]string{}}
	if s.Command != "" {
		hidden.inherited(os.Environ())
	}
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		hidden.put(k, s.Env[k])
	}
	for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
		hidden.put(k, s.Headers[k])
		if _, credentials, ok := strings.Cut(s.Headers[k], " "); ok { // "Bearer …"
			hidden.put(k, credentials)
		}
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
		if name, value, _ := strings.Cut(variable, "="); secretFlag.MatchString(name) && !filepath.IsAbs(value) {
			h.put(name, value)
		}
	}
}

// arguments takes in what follows options such as --api-key.
func (h *Redactor) arguments(args []string) {
	for i, arg := range args {
		name, value, joined := strings.Cut(arg, "=")
		if !strings.HasPrefix(arg, "-") || !secretFlag.MatchString(name) {
			continue
		}
		if !joined && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			value = args[i+1]
		}
		h.put(name, value)
	}
}

// address takes in the parts of a URL that services put keys into.
func (h *Redactor) address(address string) {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return
	}
	if password, ok := u.User.Password(); ok {
		h.put("password", password)
	}
	for name, values := range u.Query() {
		for _, v := range values {
			h.put(name, v)
		}
	}
	for part := range strings.SplitSeq(u.Path, "/") {
		if len(part) >= 16 {
			h.put("path", part)
		}
	}
}

func (h *Redactor) put(name, value string) {
	value = strings.TrimSpace(value)
	if len(value) < minNamed || len(value) < minSecret && !secretFlag.MatchString(name) {
		return
	}
	quoted, _ := json.Marshal(value) // strings always encode
	for _, form := range append(base64Forms(value), value, url.QueryEscape(value), string(quoted[1:len(quoted)-1])) {
		if _, known := h.names[form]; !known {
			h.names[form] = "[" + name + "]"
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
	if _, known := h.names[value]; !known {
		h.put(name, value)
		h.renew()
	}
}

// renew makes the replacer; a longer value goes before one that begins it.
func (h *Redactor) renew() {
	values := slices.Sorted(maps.Keys(h.names))
	slices.SortStableFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, h.names[v])
	}
	h.texts = strings.NewReplacer(pairs...)
}

// Text returns text without the secrets.
func (h *Redactor) Text(text string) string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.texts.Replace(text)
}

// credential is in the names of values that open something by themselves. Not all
// values of an entry do: the ID of a client is part of each address to log in at.
var credential = regexp.MustCompile(`(?i)(key|token|secret|passw|credential|authorization)`)

// Secret returns the name of a credential that text has in it, in brackets, or "". It is
// for what cannot be redacted and stay of use, such as an address to open.
func (h *Redactor) Secret(text string) (name string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for value, name := range h.names {
		if credential.MatchString(name) && !strings.HasPrefix(value, "http") && strings.Contains(text, value) {
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
