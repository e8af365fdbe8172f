package secrets

import (
	"strings"
)

// A tokenShape is how tokens of a service look.
type tokenShape struct {
	prefix string
	more   string // characters that follow, as in a character class: a letter, digit, and these
	least  int    // of those that follow
	digit  bool   // one of them is a digit, or it would be words
	rule   string
}

// tokenShapes are documented by the services, or used by their own scanners.
var tokenShapes = []tokenShape{
	{"ghp_", "_", 20, false, "github"},
	{"gho_", "_", 20, false, "github"},
	{"ghu_", "_", 20, false, "github"},
	{"ghs_", "_", 20, false, "github"},
	{"ghr_", "_", 20, false, "github"},
	{"github_pat_", "_", 20, false, "github"},
	{"AKIA", "", 16, false, "aws"},
	{"ASIA", "", 16, false, "aws"},
	{"xoxa-", "-", 10, true, "slack"},
	{"xoxb-", "-", 10, true, "slack"},
	{"xoxe-", "-", 10, true, "slack"},
	{"xoxe.", "-.", 10, true, "slack"},
	{"xoxo-", "-", 10, true, "slack"},
	{"xoxp-", "-", 10, true, "slack"},
	{"xoxr-", "-", 10, true, "slack"},
	{"xoxs-", "-", 10, true, "slack"},
	{"xapp-", "-", 10, true, "slack"},
	{"sk-ant-", "-_", 16, true, "anthropic"},
	{"sk-", "-_", 20, true, "openai"},
}

// begins has the shapes that begin with a byte, and an empty list for a byte at which something else
// is looked for.
var begins = func() (at [256][]tokenShape) {
	for _, c := range "e-Bb:=" { // JSON web tokens, PEM, Bearer, addresses and keys
		at[c] = []tokenShape{}
	}
	for _, s := range tokenShapes {
		at[s.prefix[0]] = append(at[s.prefix[0]], s)
	}
	return at
}()

// findShape returns what of a secret begins at a byte of a text, or is seen there.
func findShape(text string, at int, shapes []tokenShape) (finding, bool) {
	switch c := text[at]; {
	case c == ':' || c == '=':
		if strings.HasPrefix(text[at:], "://") {
			return urlPassword(text, at)
		}
		return keyValue(text, at)
	case at > 0 && inWord[text[at-1]]:
		return finding{}, false
	case c == '-':
		return privateKey(text, at)
	case c == 'B' || c == 'b':
		return bearer(text, at)
	case c == 'e':
		return webToken(text, at)
	}
	for i := range shapes {
		if s := &shapes[i]; strings.HasPrefix(text[at:], s.prefix) && !goesOn(text, at, s.more) {
			from := at + len(s.prefix)
			if end := span(text, from, s.more); end-from >= s.least && (!s.digit || strings.ContainsAny(text[from:end], digits)) {
				return finding{from: at, to: end, rule: s.rule}, true
			}
		}
	}
	return finding{}, false
}

const digits = "0123456789"

// isAlnum has letters and digits, inWord these and the underscore.
var isAlnum, inWord = func() (alnum, word [256]bool) {
	for c := range 256 {
		alnum[c] = c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		word[c] = alnum[c] || c == '_'
	}
	return alnum, word
}()

// goesOn reports whether what is at a byte belongs to what is before it. Looking there again for each
// part of a long word would take the square of its length.
func goesOn(text string, at int, more string) bool {
	return at > 0 && strings.IndexByte(more, text[at-1]) >= 0
}

// span returns the end of the letters, digits and more characters that begin at a byte.
func span(text string, from int, more string) int {
	for from < len(text) && (isAlnum[text[from]] || strings.IndexByte(more, text[from]) >= 0) {
		from++
	}
	return from
}

// webToken finds a JSON web token (RFC 7519): base64url of {" in two of three parts.
func webToken(text string, at int) (finding, bool) {
	if !strings.HasPrefix(text[at:], "eyJ") || goesOn(text, at, "-_") {
		return finding{}, false
	}
	end := span(text, at, "-_")
	if end-at < 12 || !strings.HasPrefix(text[end:], ".eyJ") {
		return finding{}, false
	}
	end = span(text, end+1, "-_.")
	return finding{from: at, to: end, rule: "jwt"}, true
}

// bearer finds the token of an Authorization header (RFC 6750, section 2.1).
func bearer(text string, at int) (finding, bool) {
	const word = "bearer "
	if len(text)-at < len(word) || text[at+1]|0x20 != 'e' || !strings.EqualFold(text[at:at+len(word)], word) {
		return finding{}, false
	}
	from := at + len(word)
	end := span(text, from, "-._~+/=")
	if end-from < 8 || !strings.ContainsAny(text[from:end], digits) {
		return finding{}, false
	}
	return finding{from: from, to: end, rule: "bearer"}, true
}

// privateKey finds a key in PEM (RFC 7468), up to its end or that of the text, and the rest of one that
// began before the text.
func privateKey(text string, at int) (finding, bool) {
	const begin, end, what = "-----BEGIN ", "-----END ", "PRIVATE KEY-----"
	if !strings.HasPrefix(text[at:], "-----") {
		return finding{}, false
	}
	head := text[at:min(len(text), at+64)]
	label := strings.Index(head, what)
	switch {
	case label < 0:
		return finding{}, false
	case strings.HasPrefix(head, begin):
		to := len(text)
		if n := strings.Index(text[at:], end); n >= 0 {
			to = at + n
			if m := strings.Index(text[to:], what); m >= 0 {
				to += m + len(what)
			}
		}
		return finding{from: at, to: to, rule: "private-key"}, true
	case strings.HasPrefix(head, end):
		from := at
		for from > 0 && (isAlnum[text[from-1]] || strings.IndexByte("+/=\r\n\\", text[from-1]) >= 0) {
			from--
		}
		return finding{from: from, to: at + label + len(what), rule: "private-key"}, true
	}
	return finding{}, false
}

// maxAuthority bounds how far a password of an address is looked for.
const maxAuthority = 512

// urlPassword finds the password in scheme://user:password@host, of which at is the first colon.
func urlPassword(text string, at int) (finding, bool) {
	from := at + len("://")
	end := from
	for most := min(len(text), from+maxAuthority); end < most && strings.IndexByte("/?#\"'<>\\ \t\r\n", text[end]) < 0; {
		end++
	}
	user := text[from:end]
	user = user[:max(strings.LastIndexByte(user, '@'), 0)]
	colon := strings.IndexByte(user, ':')
	if colon < 0 || colon+1 == len(user) {
		return finding{}, false
	}
	return finding{from: from + colon + 1, to: from + len(user), rule: "url-password"}, true
}
