package rule

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/text"
)

// Expand replaces each ${env:NAME} by the variable of toolcell's own environment.
// It returns what of the value is secret: those variables, or all of it.
func Expand(value string, lookup func(string) (string, bool)) (expanded string, secrets []string, err error) {
	var out strings.Builder
	for {
		before, after, ok := strings.Cut(value, "${env:")
		out.WriteString(before)
		if !ok {
			break
		}
		name, rest, ok := strings.Cut(after, "}")
		if !ok {
			return "", nil, errors.New("a ${env: has no }")
		}
		v, set := lookup(name)
		if !set || v == "" {
			return "", nil, fmt.Errorf("the variable %s is not set where toolcell runs", text.Bound(name, 80))
		}
		out.WriteString(v)
		secrets = append(secrets, v)
		value = rest
	}
	if strings.ContainsFunc(out.String(), unicode.IsControl) {
		return "", nil, errors.New("its value cannot stand in a header")
	}
	if secrets == nil { // without the scheme, such as Bearer
		secrets = []string{out.String()[strings.IndexByte(out.String(), ' ')+1:]}
	}
	return out.String(), secrets, nil
}

// IsVariable reports whether a variable may have this name.
func IsVariable(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	}) && (s[0] < '0' || s[0] > '9')
}
