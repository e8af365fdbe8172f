package policy

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/internal/netguard"
	"github.com/toolcell/toolcell/internal/requirement"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/policy/hosts"
	"github.com/toolcell/toolcell/mcpproxy/policy/rule"
)

// parsePackages takes the section [packages].
func parsePackages(v rule.Value) (packageRules, error) {
	p := defaultPackages()
	fields, err := v.Fields()
	if err != nil {
		return p, err
	}
	var login rule.Value
	for _, f := range fields {
		switch f.Name() {
		case "allow":
			err = p.parseAllow(f)
		case "deny":
			p.deny, err = parsePackageNames(f)
		case "ask":
			err = p.parseAsk(f)
		case "index":
			p.index, err = parseIndex(f)
		case "excludeNewer":
			var d time.Duration
			d, err = parsePeriod(f)
			p.excludeNewer = &d
		case "maxBytes":
			p.maxBytes, err = parseSize(f)
		case "maxCount":
			p.maxCount, err = parseCount(f)
		case "maxTime":
			if p.maxTime, err = parsePeriod(f); err == nil && p.maxTime <= 0 {
				err = f.Errorf("it must be more than 0")
			}
		case "files":
			p.files, err = parseFileHosts(f)
		case "preload":
			p.preload, err = parsePreload(f)
		case "credential":
			login = f
			p.login, err = parseLogin(f)
		default:
			err = f.UnknownKey("allow", "deny", "ask", "index", "excludeNewer", "maxBytes", "maxCount", "maxTime", "files", "preload", "credential")
		}
		if err != nil {
			return p, err
		}
	}
	if p.login != nil && p.index == DefaultIndex {
		return p, login.Errorf("it is for an index of your own, which [packages] index names")
	}
	return p, nil
}

// parseLogin takes { user = "…", password = "${env:NAME}" }.
func parseLogin(v rule.Value) (*indexLogin, error) {
	fields, err := v.Fields()
	if err != nil {
		return nil, err
	}
	var l indexLogin
	for _, f := range fields {
		switch f.Name() {
		case "user":
			l.user, err = f.Text()
		case "password":
			l.password, err = f.Text()
		default:
			err = f.UnknownKey("user", "password")
		}
		if err != nil {
			return nil, err
		}
	}
	if l.user == "" || l.password == "" {
		return nil, v.Errorf(`it needs a user and a password, as in { user = "me", password = "${env:INDEX_TOKEN}" }`)
	}
	return &l, nil
}

// parseAllow takes "any", "none", or a list of packages.
func (p *packageRules) parseAllow(v rule.Value) (err error) {
	switch v.Any() {
	case "any":
		return nil
	case "none":
		p.allowListed = true
		return nil
	}
	if _, isList := v.List(); !isList {
		return v.Errorf(`it must be "any", "none", or a list of packages such as ["pandas", "numpy>=2"]`)
	}
	p.allowListed = true
	p.allow, err = parsePackageList(v)
	return err
}

// parseAsk takes "any" or a list of packages.
func (p *packageRules) parseAsk(v rule.Value) (err error) {
	if v.Any() == "any" {
		p.askAny = true
		return nil
	}
	if _, isList := v.List(); !isList {
		return v.Errorf(`it must be "any", or a list of packages such as ["pandas", "numpy>=2"]`)
	}
	p.ask, err = parsePackageList(v)
	return err
}

// parsePackageList takes packages, each once.
func parsePackageList(v rule.Value) ([]requirement.Requirement, error) {
	all, err := parsePackageNames(v)
	if err != nil {
		return nil, err
	}
	for i, a := range all {
		if _, twice := findPackage(all[:i], a.Name); twice {
			return nil, v.Errorf("%q is there twice; write its versions as in \"%s>=2,<3\"", a.Name, a.Name)
		}
	}
	return all, nil
}

// parsePackageNames takes packages, each a name and perhaps versions.
func parsePackageNames(v rule.Value) ([]requirement.Requirement, error) {
	lines, err := v.Texts()
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
			return nil, v.Errorf("%q: %v", text.Bound(line, 120), err)
		}
		all = append(all, r)
	}
	return all, nil
}

// parseIndex takes the address of a simple index (PEP 503). Only this host itself may
// be spoken to without TLS: an index says which hashes its files have.
func parseIndex(v rule.Value) (string, error) {
	s, err := v.Text()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return "", v.Errorf("%q is not an address such as %s", text.Bound(s, 120), DefaultIndex)
	case u.User != nil:
		return "", v.Errorf(`a name or password in the address would get into the sandbox that resolves; write them as credential = { user = "me", password = "${env:INDEX_TOKEN}" }`)
	case !netguard.IsSafe(u):
		return "", v.Errorf("the address must begin with https://; only this host itself may have http://")
	}
	return strings.TrimRight(s, "/"), nil
}

// periods are the units beside those of Go.
var periods = []struct {
	unit string
	d    time.Duration
}{{"days", 24 * time.Hour}, {"day", 24 * time.Hour}, {"d", 24 * time.Hour}, {"weeks", 7 * 24 * time.Hour}, {"week", 7 * 24 * time.Hour}, {"w", 7 * 24 * time.Hour}}

// parsePeriod takes a time such as "3 days", "36h" or "90s", or 0.
func parsePeriod(v rule.Value) (time.Duration, error) {
	if v.Any() == int64(0) {
		return 0, nil
	}
	s, ok := v.Any().(string)
	if !ok {
		return 0, v.WrongType(`a time such as "3 days" or "90s"`)
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
		return 0, v.Errorf(`%q is not a time such as "3 days" or "90s"`, text.Bound(s, 40))
	}
	return d, nil
}

// parseSize takes a number of bytes, or one with K, M or G.
func parseSize(v rule.Value) (int64, error) {
	n, ok := v.Any().(int64)
	if s, isText := v.Any().(string); isText {
		digits := strings.TrimRight(strings.ToUpper(s), "BKMG")
		factor, known := map[string]int64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9}[strings.TrimSuffix(strings.ToUpper(s)[len(digits):], "B")]
		parsed, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 32)
		n, ok = parsed*factor, known && err == nil
	}
	if !ok || n < 1 {
		return 0, v.Errorf(`it must be a number of bytes, such as "500M"`)
	}
	return n, nil
}

// parseCount takes a number of packages.
func parseCount(v rule.Value) (int, error) {
	n, ok := v.Any().(int64)
	if !ok || n < 1 || n > 1_000_000 {
		return 0, v.Errorf("it must be a number of packages from 1 to 1000000, such as 200")
	}
	return int(n), nil
}

// parseFileHosts takes hosts, each HOST or HOST:PORT.
func parseFileHosts(v rule.Value) ([]string, error) {
	texts, err := v.Texts()
	if err != nil {
		return nil, err
	}
	all := make([]string, 0, len(texts))
	for _, s := range texts {
		host, port, err := hosts.SplitPort(s)
		if strings.Contains(s, "://") {
			err = errors.New("write the host alone, as in files.example.com")
		}
		if err == nil && strings.HasPrefix(host, "*") {
			err = fmt.Errorf("a * is not supported here")
		}
		if err != nil {
			return nil, v.Errorf("%q: %v", text.Bound(s, 120), err)
		}
		if port == 0 {
			all = append(all, host)
		} else {
			all = append(all, net.JoinHostPort(host, strconv.Itoa(int(port))))
		}
	}
	return all, nil
}

func parsePreload(v rule.Value) ([]string, error) {
	modules, err := v.Texts()
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		for part := range strings.SplitSeq(m, ".") {
			if !rule.IsVariable(part) {
				return nil, v.Errorf("%q is not the name of a module", text.Bound(m, 80))
			}
		}
	}
	return modules, nil
}
