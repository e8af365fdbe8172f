package mcpproxy

import (
	"encoding/json"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// minSecret is the least length of a value that is taken for a secret. Shorter
// ones (true, 8080, debug) would be found in every second text.
const minSecret = 7

// redactor knows the values that only the server may see: of its environment,
// its headers, its address and its tokens. Error texts and what a server writes to
// stderr reach the code in the sandbox, so they are taken out of them.
type redactor struct {
	mu    sync.RWMutex
	names map[string]string // value to the name that stands in for it
	texts *strings.Replacer
}

var secretFlag = regexp.MustCompile(`(?i)(key|token|secret|password|passwd|credential|auth)`)

func newRedactor(s config.Server) *redactor {
	hidden := &redactor{names: map[string]string{}}
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
	}
	hidden.renew()
	return hidden
}

// arguments takes in what follows options such as --api-key.
func (h *redactor) arguments(args []string) {
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
func (h *redactor) address(address string) {
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

func (h *redactor) put(name, value string) {
	if value = strings.TrimSpace(value); len(value) < minSecret {
		return
	}
	for _, form := range []string{value, url.QueryEscape(value)} {
		if _, known := h.names[form]; !known {
			h.names[form] = "[" + name + "]"
		}
	}
	if quoted, err := json.Marshal(value); err == nil {
		if form := string(quoted[1 : len(quoted)-1]); form != value {
			h.names[form] = "[" + name + "]"
		}
	}
}

// add takes in a value that came up while running.
func (h *redactor) add(name, value string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.names[value]; !known {
		h.put(name, value)
		h.renew()
	}
}

// renew makes the replacer; a longer value goes before one that begins it.
func (h *redactor) renew() {
	values := slices.Sorted(maps.Keys(h.names))
	slices.SortStableFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range values {
		pairs = append(pairs, v, h.names[v])
	}
	h.texts = strings.NewReplacer(pairs...)
}

// hide returns text without the secrets.
func (h *redactor) hide(text string) string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.texts.Replace(text)
}

// hideError returns an error whose text has no secrets; what it wraps can still
// be asked for.
func (h *redactor) hideError(err error) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); h.hide(text) != text {
		return &hiddenError{h.hide(text), err}
	}
	return err
}

// hideJSON takes the secrets out of a JSON text, if it then still is one.
func (h *redactor) hideJSON(raw json.RawMessage) json.RawMessage {
	if hidden := h.hide(string(raw)); json.Valid([]byte(hidden)) {
		return json.RawMessage(hidden)
	}
	return raw
}

type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.err }
