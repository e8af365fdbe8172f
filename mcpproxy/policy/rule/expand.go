package rule

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/text"
)

// reference finds the beginning of a variable, its name, and its end.
var reference = text.Pattern(`\$\{env:([^}]*)(\}?)`)

// Expand replaces each ${env:NAME} by the variable of toolcell's own environment.
// It returns what of the value is secret: those variables, or all of it.
func Expand(value string, lookup func(string) (string, bool)) (expanded string, secrets []string, err error) {
	expanded, err = text.Expand(value, reference(), func(match []string) (string, error) {
		if match[2] == "" {
			return "", errors.New("a ${env: has no }")
		}
		v, _ := lookup(match[1])
		if v == "" {
			return "", fmt.Errorf("the variable %s is not set where toolcell runs", text.Bound(match[1], 80))
		}
		secrets = append(secrets, v)
		return v, nil
	})
	if err != nil {
		return "", nil, err
	}
	if strings.ContainsFunc(expanded, unicode.IsControl) {
		return "", nil, errors.New("its value cannot stand in a header")
	}
	if secrets == nil { // without the scheme, such as Bearer
		secrets = []string{expanded[strings.IndexByte(expanded, ' ')+1:]}
	}
	return expanded, secrets, nil
}

// IsVariable reports whether a variable may have this name.
func IsVariable(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	}) && (s[0] < '0' || s[0] > '9')
}
