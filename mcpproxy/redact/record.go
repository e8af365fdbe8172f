package redact

import (
	"path/filepath"
	"strings"
	"unicode"

	"github.com/toolcell/toolcell/internal/text"
)

// Record returns a text for the record of runs: without what is secret by its name, or looks like it. Text
// takes out any value that is not very short, which is right for what a server's errors show. On record it
// would hide the word "production" in the code of each run because one server has NODE_ENV=production.
func (h *Redactor) Record(text string) string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.record.Replace(text)
}

// recorded is what stands in for a value on record. It can be in a JSON string.
func recorded(name string) string {
	plain := func(c rune) rune {
		if c > unicode.MaxASCII || c != '_' && c != '-' && c != '.' && c != ' ' && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return '_'
		}
		return c
	}
	return "[hidden:" + strings.Map(plain, name) + "]"
}

// secretName is in the names of secrets; AUTHOR is none.
var secretName = text.Pattern(`(?i)(key|token|secret|passw|passphrase|_pass$|pwd|credential|cookie|session|auth($|[^o]|ori[sz]))`)

// isSecret reports whether a value of at least minNamed bytes is a secret on record.
func isSecret(name, value string) bool {
	if !secretName().MatchString(name) {
		return len(value) >= minSecret && looksSecret(value)
	}
	switch strings.ToLower(value) {
	case "true", "false", "none", "null", "basic", "bearer", "oauth", "oauth2": // USE_AUTH=true
		return false
	}
	return true
}

// maxPlain is the length of a phrase that is taken for a secret though it has nothing but words.
const maxPlain = 24

// looksSecret reports whether a value is long, or has more in it than words and short numbers.
func looksSecret(value string) bool {
	separator := func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	for _, part := range strings.FieldsFunc(value, separator) {
		if !plainPart().MatchString(part) {
			return true
		}
	}
	place := filepath.IsAbs(value) || strings.HasPrefix(value, "http://") || strings.HasPrefix(value, "https://")
	return len(value) >= maxPlain && !place
}

// plainPart matches a word, a number such as a port or a year, and v2 or x64.
var plainPart = text.Pattern(`^(\p{Lu}?\p{Ll}{1,16}|\p{Lu}{1,16}|\d{1,6}|[[:alpha:]]{1,3}\d{1,3})$`)
