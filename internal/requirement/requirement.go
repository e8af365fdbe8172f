// Package requirement reads what Python projects write about the packages that they
// need: a requirement on one line (PEP 508), and versions and their specifiers
// (PEP 440).
//
// It takes what an index can answer and nothing else: no addresses, no paths, no
// options of pip. What it returns is written anew from its parts, so it is safe to
// hand on to a resolver line by line.
package requirement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// A Requirement is a package that is needed, in which versions, and where.
type Requirement struct {
	Name      string // in its one form (Name)
	Extras    []string
	Specifier Specifier
	Marker    string // on which Pythons; "" is all
}

// maxLine bounds a requirement, in bytes.
const maxLine = 1000

// nameForm is a name or an extra (PEP 508, Names).
var nameForm = text.Pattern(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?`)

// Name returns the one form of a package's name (PEP 503): lower case, with single
// hyphens.
func Name(s string) (string, error) {
	if found := nameForm().FindString(s); found == "" || found != s {
		return "", fmt.Errorf("%q is not the name of a package", text.Bound(s, 80))
	}
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return c == '-' || c == '_' || c == '.' }), "-"), nil
}

// Parse reads name[extras] specifier; marker.
func Parse(line string) (r Requirement, err error) {
	if err := checkForm(line); err != nil {
		return r, err
	}
	rest := strings.TrimSpace(line)
	name := nameForm().FindString(rest)
	if r.Name, err = Name(name); err != nil {
		return r, errors.New(`it must begin with the name of a package, as in "pandas>=2"`)
	}
	rest = strings.TrimSpace(rest[len(name):])
	if inside, ok := strings.CutPrefix(rest, "["); ok {
		extras, after, ok := strings.Cut(inside, "]")
		if !ok {
			return r, errors.New("a [ has no ]")
		}
		if r.Extras, err = parseExtras(extras); err != nil {
			return r, err
		}
		rest = strings.TrimSpace(after)
	}
	if strings.HasPrefix(rest, "@") {
		return r, errors.New("a package comes from the index by its name and version; an address after @ is not supported")
	}
	versions, marker, hasMarker := strings.Cut(rest, ";")
	versions = strings.TrimSpace(versions)
	if inside, ok := strings.CutPrefix(versions, "("); ok {
		if versions, ok = strings.CutSuffix(inside, ")"); !ok {
			return r, errors.New("a ( has no )")
		}
	}
	if r.Specifier, err = ParseSpecifier(versions); err != nil {
		return r, err
	}
	if hasMarker {
		r.Marker, err = parseMarker(marker)
	}
	return r, err
}

// UnmarshalText is Parse. Its errors quote the line.
func (r *Requirement) UnmarshalText(line []byte) (err error) {
	if *r, err = Parse(string(line)); err != nil {
		return fmt.Errorf("%q: %w", text.Bound(string(line), 120), err)
	}
	return nil
}

// checkForm refuses what pip would read as something other than a requirement.
func checkForm(line string) error {
	trimmed := strings.TrimSpace(line)
	switch {
	case len(line) > maxLine:
		return fmt.Errorf("it has %d bytes; the most is %d", len(line), maxLine)
	case strings.ContainsFunc(line, func(c rune) bool { return c < ' ' && c != '\t' || c > '~' }):
		return errors.New("it must be one line of ASCII")
	case trimmed == "":
		return errors.New("it is empty")
	case strings.HasPrefix(trimmed, "-"):
		return errors.New("options such as -r and --index-url are not supported; the user sets the index in the policy")
	case strings.HasPrefix(trimmed, ".") || strings.HasPrefix(trimmed, "/") || strings.Contains(trimmed, "://") && !strings.Contains(trimmed, "@"):
		return errors.New("a package comes from the index by its name; paths and addresses are not supported")
	}
	return nil
}

func parseExtras(s string) (extras []string, err error) {
	for extra := range strings.SplitSeq(s, ",") {
		if extra = strings.TrimSpace(extra); extra == "" {
			if strings.TrimSpace(s) == "" {
				return nil, nil
			}
			return nil, errors.New("an extra is empty")
		}
		if extra, err = Name(extra); err != nil {
			return nil, fmt.Errorf("%q is not the name of an extra", text.Bound(extra, 80))
		}
		extras = append(extras, extra)
	}
	slices.Sort(extras)
	return slices.Compact(extras), nil
}

// markerToken is a token of a marker (PEP 508, Environment Markers).
var markerToken = text.Pattern(`^(?:'[^'"\\#]*'|"[^'"\\#]*"|===|==|~=|!=|<=|>=|<|>|\(|\)|[a-z_.]+)`)

var markerWords = []string{
	"and", "or", "in", "not", "python_version", "python_full_version", "os_name", "sys_platform", "platform_release",
	"platform_system", "platform_version", "platform_machine", "platform_python_implementation", "implementation_name",
	"implementation_version", "extra",
}

// parseMarker returns a marker with one space between its tokens. Whether they make an
// expression is for the resolver to say.
func parseMarker(s string) (string, error) {
	var tokens []string
	for rest := strings.TrimSpace(s); rest != ""; rest = strings.TrimSpace(rest) {
		token := markerToken().FindString(rest)
		word := token != "" && (token[0] >= 'a' && token[0] <= 'z' || token[0] == '_' || token[0] == '.')
		if token == "" || word && !slices.Contains(markerWords, token) {
			return "", fmt.Errorf("the marker is not understood at %q", text.Bound(rest, 40))
		}
		tokens = append(tokens, token)
		rest = rest[len(token):]
	}
	if tokens == nil {
		return "", errors.New("the marker after ; is empty")
	}
	return strings.Join(tokens, " "), nil
}

// String returns the requirement in its one form.
func (r Requirement) String() string {
	s := r.Name
	if len(r.Extras) > 0 {
		s += "[" + strings.Join(r.Extras, ",") + "]"
	}
	s += r.Specifier.String()
	if r.Marker != "" {
		s += " ; " + r.Marker
	}
	return s
}
