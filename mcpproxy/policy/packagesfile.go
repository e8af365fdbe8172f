package policy

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/toolcell/toolcell/mcpproxy/requirement"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

func parsePackages(path toml.Key, v any) (packages, error) {
	p := defaultPackages()
	keys, err := table(path, v)
	if err != nil {
		return p, err
	}
	for _, key := range sorted(keys) {
		at, v := under(path, key), keys[key]
		switch key {
		case "allow":
			err = p.parseAllow(at, v)
		case "deny":
			p.deny, err = parsePackageNames(at, v)
		case "ask":
			err = p.parseAsk(at, v)
		case "index":
			p.index, err = parseIndex(at, v)
		case "excludeNewer":
			var d time.Duration
			d, err = parsePeriod(at, v)
			p.excludeNewer = &d
		case "maxBytes":
			p.maxBytes, err = parseSize(at, v)
		case "maxCount":
			p.maxCount, err = parseLimit(at, v)
		case "maxTime":
			if p.maxTime, err = parsePeriod(at, v); err == nil && p.maxTime <= 0 {
				err = &fault{at, "it must be more than 0"}
			}
		case "files":
			p.files, err = parseHosts(at, v)
		case "preload":
			p.preload, err = parseModules(at, v)
		case "credential":
			p.login, err = parseLogin(at, v)
		default:
			err = unknownKey(at, "allow", "deny", "ask", "index", "excludeNewer", "maxBytes", "maxCount", "maxTime", "files", "preload", "credential")
		}
		if err != nil {
			return p, err
		}
	}
	if p.login != nil && p.index == DefaultIndex {
		return p, &fault{under(path, "credential"), "it is for an index of your own, which [packages] index names"}
	}
	return p, nil
}

// parseLogin takes { user = "…", password = "${env:NAME}" }.
func parseLogin(path toml.Key, v any) (*indexLogin, error) {
	keys, err := table(path, v)
	if err != nil {
		return nil, err
	}
	var l indexLogin
	for _, key := range sorted(keys) {
		at := under(path, key)
		s, ok := keys[key].(string)
		switch {
		case key != "user" && key != "password":
			return nil, unknownKey(at, "user", "password")
		case !ok:
			return nil, wrongType(at, "a string", keys[key])
		case key == "user":
			l.user = s
		default:
			l.password = s
		}
	}
	if l.user == "" || l.password == "" {
		return nil, &fault{path, `it needs a user and a password, as in { user = "me", password = "${env:INDEX_TOKEN}" }`}
	}
	return &l, nil
}

// parseAllow takes "any", "none", or a list of packages.
func (p *packages) parseAllow(path toml.Key, v any) (err error) {
	switch v {
	case "any":
		return nil
	case "none":
		p.allowListed = true
		return nil
	}
	if _, ok := v.([]any); !ok {
		return &fault{path, `it must be "any", "none", or a list of packages such as ["pandas", "numpy>=2"]`}
	}
	p.allowListed = true
	p.allow, err = parsePackageList(path, v)
	return err
}

// parseAsk takes "any" or a list of packages.
func (p *packages) parseAsk(path toml.Key, v any) (err error) {
	if v == "any" {
		p.askAny = true
		return nil
	}
	if _, ok := v.([]any); !ok {
		return &fault{path, `it must be "any", or a list of packages such as ["pandas", "numpy>=2"]`}
	}
	p.ask, err = parsePackageList(path, v)
	return err
}

// parsePackageList takes packages, each once.
func parsePackageList(path toml.Key, v any) ([]requirement.Requirement, error) {
	all, err := parsePackageNames(path, v)
	if err != nil {
		return nil, err
	}
	for i, a := range all {
		if _, twice := findPackage(all[:i], a.Name); twice {
			return nil, &fault{path, fmt.Sprintf("%q is there twice; write its versions as in \"%s>=2,<3\"", a.Name, a.Name)}
		}
	}
	return all, nil
}

// parsePackageNames takes packages, each a name and perhaps versions.
func parsePackageNames(path toml.Key, v any) ([]requirement.Requirement, error) {
	lines, err := parseTexts(path, v)
	if err != nil {
		return nil, err
	}
	all := make([]requirement.Requirement, 0, len(lines))
	for _, line := range lines {
		r, err := requirement.Parse(line)
		if err == nil && (r.Extras != nil || r.Marker != "") {
			err = fmt.Errorf(`here a package is a name and perhaps versions, as in "numpy>=2"`)
		}
		if err != nil {
			return nil, &fault{path, fmt.Sprintf("%q: %v", text.Bound(line, 120), err)}
		}
		all = append(all, r)
	}
	return all, nil
}

// parseIndex takes the address of a simple index (PEP 503). Only this host itself may
// be spoken to without TLS: an index says which hashes its files have.
func parseIndex(path toml.Key, v any) (string, error) {
	s, ok := v.(string)
	if !ok {
		return "", wrongType(path, "a string", v)
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return "", &fault{path, fmt.Sprintf("%q is not an address such as %s", text.Bound(s, 120), DefaultIndex)}
	case u.User != nil:
		return "", &fault{path, `a name or password in the address would get into the sandbox that resolves; write them as credential = { user = "me", password = "${env:INDEX_TOKEN}" }`}
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return "", &fault{path, "the address must begin with https://; only this host itself may have http://"}
	}
	return strings.TrimRight(s, "/"), nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// periods are the units beside those of Go.
var periods = []struct {
	unit string
	d    time.Duration
}{{"days", 24 * time.Hour}, {"day", 24 * time.Hour}, {"d", 24 * time.Hour}, {"weeks", 7 * 24 * time.Hour}, {"week", 7 * 24 * time.Hour}, {"w", 7 * 24 * time.Hour}}

// parsePeriod takes a time such as "3 days", "36h" or "90s", or 0.
func parsePeriod(path toml.Key, v any) (time.Duration, error) {
	if v == int64(0) {
		return 0, nil
	}
	s, ok := v.(string)
	if !ok {
		return 0, wrongType(path, `a time such as "3 days" or "90s"`, v)
	}
	const most = 10 * 365 * 24 * time.Hour
	for _, p := range periods {
		number, ok := strings.CutSuffix(s, p.unit)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 16); err == nil {
			return min(time.Duration(n)*p.d, most), nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > most {
		return 0, &fault{path, fmt.Sprintf(`%q is not a time such as "3 days" or "90s"`, text.Bound(s, 40))}
	}
	return d, nil
}

// parseSize takes a number of bytes, or one with K, M or G.
func parseSize(path toml.Key, v any) (int64, error) {
	n, ok := v.(int64)
	if s, isText := v.(string); isText {
		digits := strings.TrimRight(strings.ToUpper(s), "BKMG")
		factor, known := map[string]int64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[strings.TrimSuffix(strings.ToUpper(s)[len(digits):], "B")]
		parsed, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 32)
		n, ok = parsed*factor, known && err == nil
	}
	if !ok || n < 1 {
		return 0, &fault{path, `it must be a number of bytes, such as "500M"`}
	}
	return n, nil
}

// parseHosts takes hosts, each HOST or HOST:PORT.
func parseHosts(path toml.Key, v any) ([]string, error) {
	texts, err := parseTexts(path, v)
	if err != nil {
		return nil, err
	}
	hosts := make([]string, 0, len(texts))
	for _, s := range texts {
		host, port, err := parseHostPort(s)
		if err == nil && strings.HasPrefix(string(host), "*") {
			err = fmt.Errorf("a * is not supported here")
		}
		if err != nil {
			return nil, &fault{path, fmt.Sprintf("%q: %v", text.Bound(s, 120), err)}
		}
		if port == 0 {
			hosts = append(hosts, string(host))
		} else {
			hosts = append(hosts, net.JoinHostPort(string(host), strconv.Itoa(int(port))))
		}
	}
	return hosts, nil
}

func parseModules(path toml.Key, v any) ([]string, error) {
	modules, err := parseTexts(path, v)
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		for part := range strings.SplitSeq(m, ".") {
			if !validVariable(part) {
				return nil, &fault{path, fmt.Sprintf("%q is not the name of a module", text.Bound(m, 80))}
			}
		}
	}
	return modules, nil
}
