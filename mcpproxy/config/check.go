package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/internal/text"
	"golang.org/x/net/http/httpguts"
)

// MaxNameLength bounds the name of a server, in characters.
const MaxNameLength = 128

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

// checkCommand refuses an entry that execve would refuse, with a clearer error.
func (s Server) checkCommand() error {
	if strings.TrimSpace(s.Command) == "" {
		return errors.New(`"command" is empty`)
	}
	words := append([]string{s.Command, s.Dir}, s.Args...)
	for _, k := range slices.Sorted(maps.Keys(s.Env)) {
		if k == "" || strings.Contains(k, "=") {
			return fmt.Errorf("%q is no name for an environment variable", k)
		}
		words = append(words, k, s.Env[k])
	}
	if strings.ContainsRune(strings.Join(words, ""), 0) {
		return errors.New("its command, arguments or environment contain a NUL character")
	}
	return nil
}

// checkRemote refuses an entry from which no request can be made.
func (s Server) checkRemote() error {
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		return errors.New(`"url" is empty`)
	case err != nil || strings.ContainsFunc(s.URL, unicode.IsControl):
		return errors.New("its URL is no URL") // it may hold a token, so it is not quoted
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("its URL begins with %q; only http and https are supported", text.Printable(u.Scheme, 32)+":")
	case u.Hostname() == "":
		return errors.New("its URL names no host")
	}
	for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
		if !httpguts.ValidHeaderFieldName(k) {
			return fmt.Errorf("%q is no name for a header", text.Printable(k, 64))
		}
		if !httpguts.ValidHeaderFieldValue(s.Headers[k]) {
			return fmt.Errorf("the value of the header %q has characters that no header can have", k)
		}
	}
	return s.OAuth.check()
}

// check refuses settings with which no login is possible.
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
