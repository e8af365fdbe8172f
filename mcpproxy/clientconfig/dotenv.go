package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// parseDotenv reads a file of NAME=value lines. A value may be in single
// quotes, where everything counts, or in double quotes, where \n and the like
// are escapes and lines may follow. An unquoted one ends at " #".
//
// It does not expand $NAME, and its errors do not quote the file. That is why
// github.com/joho/godotenv is not used: it expands $NAME in unquoted and
// double-quoted values, which changes passwords that contain a dollar sign, and
// its errors quote the rest of the file, secrets included.
func parseDotenv(data []byte) (map[string]string, error) {
	if bytes.IndexByte(data, 0) >= 0 {
		return nil, errors.New("contains a NUL character")
	}
	env := map[string]string{}
	text, line := strings.ReplaceAll(string(data), "\r\n", "\n"), 0
	for text != "" {
		var first string
		first, text, _ = strings.Cut(text, "\n")
		line++
		first = strings.TrimSpace(first)
		if first == "" || first[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(first, "export "), "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !variableName().MatchString(strings.NewReplacer(".", "_", "-", "_").Replace(name)) {
			return nil, fmt.Errorf("line %d is not NAME=value", line)
		}
		if value == "" || value[0] != '"' && value[0] != '\'' {
			value, _, _ = strings.Cut(value, " #")
			env[name] = strings.TrimSpace(value)
			continue
		}
		quote := value[0]
		inner, end := unquote(value[1:], quote)
		for start := line; end < 0; inner, end = unquote(value[1:], quote) {
			if text == "" {
				return nil, fmt.Errorf("line %d: a quotation mark is not closed", start)
			}
			var more string
			more, text, _ = strings.Cut(text, "\n")
			value += "\n" + more
			line++
			if line-start > 1000 {
				return nil, fmt.Errorf("line %d: a value of more than 1000 lines", start)
			}
		}
		env[name] = inner
	}
	return env, nil
}

// unquote returns the text before the closing quote, and the quote's index: -1 if
// there is none.
func unquote(s string, quote byte) (string, int) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return b.String(), i
		case s[i] == '\\' && quote == '"' && i+1 < len(s):
			i++
			if at := strings.IndexByte("nrt\"\\$`", s[i]); at >= 0 {
				b.WriteByte("\n\r\t\"\\$`"[at])
			} else {
				b.WriteString(s[i-1 : i+1])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return "", -1
}
