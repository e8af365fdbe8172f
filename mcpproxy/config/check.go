package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/internal/text"
)

// Bounds of an entry.
const (
	MaxNameLength   = 128
	maxCommandBytes = 1 << 20 // of command, arguments and environment; execve refuses about twice as much
	maxURL          = 16 << 10
	maxHeaderBytes  = 256 << 10
)

// CheckName refuses names that a message cannot show.
func CheckName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.New("its name is empty")
	case utf8.RuneCountInString(name) > MaxNameLength:
		return fmt.Errorf("its name is longer than %d characters", MaxNameLength)
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("its name contains control characters")
	}
	return nil
}

// Check refuses an entry that cannot be started or reached.
func (s Server) Check() error {
	if s.Transport == Stdio {
		return s.checkCommand()
	}
	return s.checkRemote()
}

// checkCommand refuses what execve would refuse, in words that help.
func (s Server) checkCommand() error {
	if strings.TrimSpace(s.Command) == "" {
		return errors.New(`"command" is empty`)
	}
	size := len(s.Command) + len(s.Dir)
	words := append([]string{s.Command, s.Dir}, s.Args...)
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		if k == "" || strings.Contains(k, "=") {
			return fmt.Errorf("%q is no name for an environment variable", k)
		}
		words = append(words, k, s.Env[k])
	}
	for _, w := range words {
		if strings.ContainsRune(w, 0) {
			return errors.New("its command, arguments or environment contain a NUL character")
		}
		size += len(w) + 1
	}
	if size > maxCommandBytes {
		return errors.New("its command, arguments and environment are too long")
	}
	return nil
}

// headerName is a token, as RFC 9110 calls it in section 5.6.2.
var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// IsHeaderName reports whether a header can have this name.
func IsHeaderName(name string) bool { return headerName.MatchString(name) }

// checkRemote refuses what no request can be made of.
func (s Server) checkRemote() error {
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		return errors.New(`"url" is empty`)
	case len(s.URL) > maxURL:
		return errors.New("its URL is too long")
	case err != nil || strings.ContainsFunc(s.URL, unicode.IsControl):
		return errors.New("its URL is no URL") // it may hold a token, so it is not quoted
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("its URL begins with %q; only http and https are supported", text.Printable(u.Scheme, 32)+":")
	case u.Hostname() == "":
		return errors.New("its URL names no host")
	}
	size := 0
	for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
		if !IsHeaderName(k) {
			return fmt.Errorf("%q is no name for a header", text.Printable(k, 64))
		}
		if strings.ContainsFunc(s.Headers[k], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return fmt.Errorf("the value of the header %q has characters that no header can have", k)
		}
		size += len(k) + len(s.Headers[k])
	}
	if size > maxHeaderBytes {
		return errors.New("its headers are too long")
	}
	return s.OAuth.check()
}

// check refuses what no login can be made of.
func (o *OAuth) check() error {
	if o == nil {
		return nil
	}
	if o.Machine && (o.ClientID == "" || o.ClientSecret == "" && o.PrivateKey == "") {
		return errors.New(`in "oauth": client_credentials needs "clientId", and "clientSecret" or "privateKey"`)
	}
	if o.MetadataURL != "" {
		// The id of a client is compared as text, so it has to be what the service would write.
		u, err := url.Parse(o.MetadataURL)
		if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") == "" || u.Fragment != "" || u.User != nil {
			return errors.New(`in "oauth": "clientMetadataUrl" is not an https address with a path`)
		}
	}
	if o.RedirectURL != "" {
		u, err := url.Parse(o.RedirectURL)
		if err != nil || u.Scheme != "http" || !slices.Contains(netguard.Loopback, u.Hostname()) || u.Port() == "" || u.RawQuery != "" || u.Fragment != "" {
			return errors.New(`in "oauth": the browser can come back only to http://localhost:PORT/…`)
		}
	}
	return nil
}
