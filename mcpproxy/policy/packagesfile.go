package policy

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/internal/toml"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// UnmarshalJSONFrom reads the section [packages].
func (p *packageRules) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type fields packageRules
	if err := json.UnmarshalDecode(d, (*fields)(p)); err != nil {
		return err
	}
	switch {
	case p.MaxCount < 1 || p.MaxCount > maxCount:
		return toml.KeyError(d, "maxCount", fmt.Errorf("it must be a number of packages from 1 to %d, such as 200", maxCount))
	case p.MaxTime <= 0:
		return toml.KeyError(d, "maxTime", errors.New("it must be more than 0"))
	case p.Credential != nil && p.Index == DefaultIndex:
		return toml.KeyError(d, "credential", errors.New("it is for an index of your own, which [packages] index names"))
	}
	return nil
}

// UnmarshalJSONFrom takes { user = "…", password = "${env:NAME}" }.
func (l *indexLogin) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	type fields indexLogin
	if err := json.UnmarshalDecode(d, (*fields)(l)); err != nil {
		return err
	}
	if l.User == "" || l.Password == "" {
		return errors.New(`it needs a user and a password, as in { user = "me", password = "${env:INDEX_TOKEN}" }`)
	}
	return nil
}

// A packageList is all packages, or those that it lists, each once.
type packageList struct {
	any    bool
	listed []namedPackage
	words  []string // that may stand in place of a list: "any", "none"
}

// UnmarshalJSONFrom takes a list of packages, or one of the words.
func (l *packageList) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	l.any = false
	if d.PeekKind() != jsontext.KindBeginArray {
		word, err := d.ReadValue()
		if err != nil || !slices.Contains(l.words, unquoted(word)) {
			return fmt.Errorf(`it must be %s, or a list of packages such as ["pandas", "numpy>=2"]`,
				text.QuoteList(l.words, len(l.words)))
		}
		l.any = unquoted(word) == "any"
		return nil
	}
	if err := json.UnmarshalDecode(d, &l.listed); err != nil {
		return err
	}
	for i, a := range l.listed {
		if _, twice := findPackage(l.listed[:i], a.Name); twice {
			return fmt.Errorf("%q is there twice; write its versions as in \"%s>=2,<3\"", a.Name, a.Name)
		}
	}
	return nil
}

// A namedPackage is a package by its name and perhaps versions.
type namedPackage struct{ requirement.Requirement }

// UnmarshalText reads a requirement.
func (p *namedPackage) UnmarshalText(line []byte) error {
	if err := p.Requirement.UnmarshalText(line); err != nil {
		return err
	}
	if p.Extras != nil || p.Marker != "" {
		return fmt.Errorf(`%q: here a package is a name and perhaps versions, as in "numpy>=2"`,
			text.Bound(string(line), 120))
	}
	return nil
}

// An indexURL is the address of a simple index (PEP 503).
type indexURL string

// UnmarshalText takes an address, by the rules of sourceAddress.
func (i *indexURL) UnmarshalText(address []byte) error {
	s, err := sourceAddress(string(address), DefaultIndex, `credential = { user = "me", password = "${env:INDEX_TOKEN}" }`)
	*i = indexURL(s)
	return err
}

// sourceAddress checks the address of an index or a registry, and returns it without a / at its
// end. Only this host itself may be spoken to without TLS: a source says which hashes its files
// have. Example and credential are for the errors.
func sourceAddress(s, example, credential string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err == nil && u.User != nil: // first, as the others show the address
		return "", errors.New("a name or password in the address would get into the sandbox that resolves; write them as " + credential)
	case err != nil || u.Host == "" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return "", fmt.Errorf("%q is not an address such as %s", text.Bound(s, 120), example)
	case !netguard.IsSafe(u):
		return "", errors.New("the address must begin with https://; only this host itself may have http://")
	}
	return strings.TrimRight(s, "/"), nil
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// periods are the units beside those of Go.
var periods = map[string]time.Duration{"days": day, "day": day, "d": day, "weeks": week, "week": week, "w": week}

// A period is a time such as "3 days", "36h" or "90s".
type period time.Duration

const maxPeriod = 10 * 365 * day

// UnmarshalJSONFrom takes a time, or the number 0.
func (p *period) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil || string(v) == "0" {
		*p = 0
		return err
	}
	if v.Kind() != jsontext.KindString {
		return toml.KindError(`a time such as "3 days" or "90s"`)
	}
	s := unquoted(v)
	var ok bool
	if *p, ok = parsePeriod(s); !ok {
		return fmt.Errorf(`%q is not a time such as "3 days" or "90s"`, text.Bound(s, 40))
	}
	return nil
}

func parsePeriod(s string) (p period, ok bool) {
	number := strings.TrimRight(s, "adeksyw")
	if unit, ok := periods[s[len(number):]]; ok {
		if n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 16); err == nil {
			return period(min(time.Duration(n), maxPeriod/unit) * unit), true
		}
	}
	d, err := time.ParseDuration(s)
	return period(d), err == nil && d >= 0 && d <= maxPeriod
}

// unquoted is a string of JSON without its quotes.
func unquoted(v jsontext.Value) string {
	s, _ := jsontext.AppendUnquote(nil, v)
	return string(s)
}

// A byteCount is a number of bytes.
type byteCount int64

// UnmarshalJSONFrom takes a number, or a string of one with K, M or G.
func (c *byteCount) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	number, factor, bits := string(v), int64(1), 64
	if v.Kind() == jsontext.KindString {
		s := strings.ToUpper(unquoted(v))
		digits := strings.TrimRight(s, "BKMG")
		number, bits = strings.TrimSpace(digits), 32
		factor = map[string]int64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[strings.TrimSuffix(s[len(digits):], "B")]
	}
	n, err := strconv.ParseInt(number, 10, bits)
	if *c = byteCount(n * factor); err != nil || *c < 1 {
		return errors.New(`it must be a number of bytes, such as "500M"`)
	}
	return nil
}

// A fileHost is a host, HOST or HOST:PORT.
type fileHost string

// UnmarshalText takes a host.
func (h *fileHost) UnmarshalText(written []byte) error {
	s := string(written)
	host, port, err := hosts.SplitPort(s)
	if strings.Contains(s, "://") {
		err = errors.New("write the host alone, as in files.example.com")
	}
	if err == nil && strings.HasPrefix(host, "*") {
		err = errors.New("a * is not supported here")
	}
	if err != nil {
		return fmt.Errorf("%q: %w", text.Bound(s, 120), err)
	}
	if *h = fileHost(host); port != 0 {
		*h = fileHost(net.JoinHostPort(host, strconv.Itoa(int(port))))
	}
	return nil
}

// A moduleName is that of a module of Python, with dots.
type moduleName string

// UnmarshalText takes a name.
func (m *moduleName) UnmarshalText(name []byte) error {
	for part := range strings.SplitSeq(string(name), ".") {
		if !rule.IsVariable(part) {
			return fmt.Errorf("%q is not the name of a module", text.Bound(string(name), 80))
		}
	}
	*m = moduleName(name)
	return nil
}
