package mcpproxy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var (
	reference    = regexp.MustCompile(`\$\{([^}]*)\}`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// maxExpanded bounds one expanded value; a variable can be named many times.
const maxExpanded = 1 << 20

// expand replaces ${VAR} and ${VAR:-default}. A variable that is not set and
// has no default is an error: a server that is handed the literal text
// "${TOKEN}" fails later, far from the cause, or sends it to somebody.
func expand(s string, env func(string) (string, bool)) (string, error) {
	if !strings.Contains(s, "${") {
		return s, nil
	}
	var b strings.Builder
	last := 0
	for _, m := range reference.FindAllStringSubmatchIndex(s, -1) {
		b.WriteString(s[last:m[0]])
		last = m[1]
		name, fallback, hasFallback := strings.Cut(s[m[2]:m[3]], ":-")
		if !variableName.MatchString(name) {
			return "", fmt.Errorf("${%s} is not supported, only ${NAME} and ${NAME:-default}", printable(s[m[2]:m[3]], 64))
		}
		value, ok := env(name)
		if !ok && !hasFallback {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		if !ok {
			value = fallback
		}
		if b.Len()+len(value) > maxExpanded {
			return "", errors.New("is too long when its variables are expanded")
		}
		b.WriteString(value)
	}
	b.WriteString(s[last:])
	return b.String(), nil
}
