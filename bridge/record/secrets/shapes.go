package secrets

import (
	"strings"
)

// A tokenShape is how tokens of a service look.
type tokenShape struct {
	prefix string
	chars  *charset // that follow
	least  int      // of those that follow
	digit  bool     // one of them is a digit, or it would be words
	wordy  bool     // words end with the prefix, such as risk-
	rule   string
}

// tokenShapes are documented by the services, or used by their own scanners.
var tokenShapes = []tokenShape{
	{"ghp_", inWord, 20, false, false, "github"},
	{"gho_", inWord, 20, false, false, "github"},
	{"ghu_", inWord, 20, false, false, "github"},
	{"ghs_", inWord, 20, false, false, "github"},
	{"ghr_", inWord, 20, false, false, "github"},
	{"github_pat_", inWord, 20, false, false, "github"},
	{"AKIA", inKeyID, 16, false, false, "aws"},
	{"ASIA", inKeyID, 16, false, false, "aws"},
	{"xoxa-", inDashed, 10, true, false, "slack"},
	{"xoxb-", inDashed, 10, true, false, "slack"},
	{"xoxe-", inDashed, 10, true, false, "slack"},
	{"xoxe.", inDotted, 10, true, false, "slack"},
	{"xoxo-", inDashed, 10, true, false, "slack"},
	{"xoxp-", inDashed, 10, true, false, "slack"},
	{"xoxr-", inDashed, 10, true, false, "slack"},
	{"xoxs-", inDashed, 10, true, false, "slack"},
	{"xapp-", inDashed, 10, true, true, "slack"},
	{"sk-ant-", inBase64URL, 16, true, true, "anthropic"},
	{"sk-", inBase64URL, 20, true, true, "openai"},
}

// begins has the shapes that begin with a byte, and an empty list for a byte at which something else
// is looked for.
var begins = func() (at [256][]tokenShape) {
	for _, c := range ".-Bb:=(<" { // JSON web tokens, PEM and options, Bearer, addresses and keys, calls, XML
		at[c] = []tokenShape{}
	}
	for _, s := range tokenShapes {
		at[s.prefix[0]] = append(at[s.prefix[0]], s)
	}
	return at
}()

// findShape returns what of a secret begins at a byte of a text, or is seen there. What is before done
// is part of another one.
func findShape(text string, at, done int, shapes []tokenShape) (finding, bool) {
	switch text[at] {
	case ':', '=':
		if strings.HasPrefix(text[at:], "://") {
			return urlPassword(text, at)
		}
		return keyValue(text, at)
	case '-':
		if f, ok := privateKey(text, at); ok {
			return f, true
		}
		return flagValue(text, at)
	case '(':
		return callValue(text, at)
	case '<':
		return elementValue(text, at)
	case 'B', 'b':
		return bearer(text, at)
	case '.':
		return webToken(text, at, done)
	}
	if at+1 == len(text) {
		return finding{}, false
	}
	for i := range shapes {
		if s := &shapes[i]; s.prefix[1] == text[at+1] && strings.HasPrefix(text[at:], s.prefix) {
			if f, ok := s.find(text, at); ok {
				return f, true
			}
		}
	}
	return finding{}, false
}

// maxLook is how far a token is looked at before it is known to be one. Without a bound, a text of
// prefixes alone would take the square of its length.
const maxLook = 128

// find finds a token, of which the prefix is at a byte. Within a word it must look more like one than
// where a word begins: highs_and_lows, risk-assessment-2026.
func (s *tokenShape) find(text string, at int) (finding, bool) {
	if inEscape(text, at) {
		return finding{}, false
	}
	from := at + len(s.prefix)
	look := text[from:span(text[:min(len(text), from+maxLook)], from, s.chars)]
	if len(look) < s.least || s.digit && !strings.ContainsAny(look, digits) {
		return finding{}, false
	}
	if at > 0 && (inWord[text[at-1]] || s.chars[text[at-1]]) && !endsEscape(text[:at]) {
		if s.wordy && isLetter(text[at-1]) || !looksRandom(look) {
			return finding{}, false
		}
	}
	return finding{from: at, to: span(text, from+len(look), s.chars), rule: s.rule}, true
}

// looksRandom reports whether a text has letters and digits in a row, more than those of a word with a
// number.
func looksRandom(text string) bool {
	const row = 12
	for from := 0; from < len(text); from++ {
		to := span(text, from, &isAlnum)
		if to-from >= row && strings.ContainsAny(text[from:to], digits) {
			return true
		}
		from = to
	}
	return false
}

const digits = "0123456789"

// A charset has the bytes that are in it.
type charset [256]bool

// isAlnum has letters and digits, the others these and more.
var (
	isAlnum     = *alnumAnd("")
	inWord      = alnumAnd("_")
	inDashed    = alnumAnd("-")
	inDotted    = alnumAnd("-.")
	inBase64URL = alnumAnd("-_")
	inName      = inBase64URL // of an option or an element
	inJWT       = alnumAnd("-_.")
	inBearer    = alnumAnd("-._~+/=")
	inKeyID     = charsetOf("ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits) // of AWS
)

func alnumAnd(more string) *charset {
	return charsetOf("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" + digits + more)
}

func charsetOf(chars string) *charset {
	var set charset
	for i := range len(chars) {
		set[chars[i]] = true
	}
	return &set
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// span returns the end of the characters of a set that begin at a byte.
func span(text string, from int, chars *charset) int {
	for from < len(text) && chars[text[from]] {
		from++
	}
	return from
}

// webToken finds a JSON web token (RFC 7519), of which at is the first dot: base64url of {" is before it,
// whatever it follows, and after it.
func webToken(text string, at, done int) (finding, bool) {
	const object, least = "eyJ", 12
	if !strings.HasPrefix(text[at+1:], object) {
		return finding{}, false
	}
	from := at
	for from > done && inBase64URL[text[from-1]] {
		from--
	}
	n := strings.Index(text[from:at], object)
	if n < 0 || at-from-n < least || inEscape(text, from+n) {
		return finding{}, false
	}
	return finding{from: from + n, to: span(text, at+1, inJWT), rule: "jwt"}, true
}

// bearer finds the token of an Authorization header (RFC 6750, section 2.1), which may be part of an
// address.
func bearer(text string, at int) (finding, bool) {
	const word, blank = "bearer", "%20"
	if len(text)-at <= len(word) || text[at+1]|0x20 != 'e' || !strings.EqualFold(text[at:at+len(word)], word) {
		return finding{}, false
	}
	if at > 0 && isLetter(text[at-1]) && !endsEscape(text[:at]) {
		return finding{}, false
	}
	from := at + len(word)
	if strings.HasPrefix(text[from:], blank) {
		from += len(blank)
	} else if text[from] != ' ' {
		return finding{}, false
	}
	for from < len(text) && text[from] == ' ' {
		from++
	}
	end := span(text, from, inBearer)
	if end-from < 8 || !strings.ContainsAny(text[from:end], digits) {
		return finding{}, false
	}
	return finding{from: from, to: end, rule: "bearer"}, true
}

// endsEscape reports whether a text ends with what stands for a character that ends a word: a line feed
// in JSON or in Python's repr, a byte of an address, a color of a terminal.
func endsEscape(text string) bool {
	n := len(text)
	switch {
	case n >= 2 && text[n-2] == '\\':
		return strings.IndexByte("nrtbf", text[n-1]) >= 0
	case n >= 3 && text[n-3] == '%':
		return isHex(text[n-2:])
	case n >= 4 && text[n-4:n-2] == `\x`:
		return isHex(text[n-2:])
	case n >= 6 && text[n-6:n-4] == `\u`:
		return isHex(text[n-4:])
	case n >= 3 && text[n-1] == 'm':
		return strings.HasSuffix(strings.TrimRight(text[max(0, n-8):n-1], digits+";"), "[")
	}
	return false
}

// inEscape reports whether a byte is one of the digits of \u003e, which must stay whole in JSON.
func inEscape(text string, at int) bool {
	_, before, ok := strings.CutLast(text[max(0, at-5):at], `\u`)
	return ok && isHex(before) && isHex(text[at:at+1])
}

func isHex(text string) bool { return strings.Trim(text, "0123456789abcdefABCDEF") == "" }

// privateKey finds a key in PEM (RFC 7468), up to its end or that of the text, and the rest of one that
// began before the text.
func privateKey(text string, at int) (finding, bool) {
	const begin, end, what = "-----BEGIN ", "-----END ", "PRIVATE KEY-----"
	begins := strings.HasPrefix(text[at:], begin)
	if !begins && !strings.HasPrefix(text[at:], end) {
		return finding{}, false
	}
	label := strings.Index(text[at:min(len(text), at+64)], what)
	switch {
	case label < 0:
		return finding{}, false
	case begins:
		to := len(text)
		if n := strings.Index(text[at:], end); n >= 0 {
			to = at + n
			if m := strings.Index(text[to:], what); m >= 0 {
				to += m + len(what)
			}
		}
		return finding{from: at, to: to, rule: rulePrivateKey}, true
	}
	from := at
	for from > 0 && (isAlnum[text[from-1]] || strings.IndexByte("+/=\r\n\\", text[from-1]) >= 0) {
		from--
	}
	return finding{from: from, to: at + label + len(what), rule: rulePrivateKey}, true
}

// maxAuthority bounds how far a password of an address is looked for.
const maxAuthority = 512

// urlPassword finds the password in scheme://user:password@host, of which at is the first colon, or a token
// that stands for the user.
func urlPassword(text string, at int) (finding, bool) {
	from := at + len("://")
	end := from
	for most := min(len(text), from+maxAuthority); end < most && strings.IndexByte("/?#\"'<>\\ \t\r\n", text[end]) < 0; {
		end++
	}
	user := text[from:end]
	user = user[:max(strings.LastIndexByte(user, '@'), 0)]
	name, password, _ := strings.Cut(user, ":")
	f := finding{from: from + len(name) + 1, to: from + len(user), rule: "url-password"}
	switch {
	case len(name) >= 20 && looksRandom(name):
		f.from = from
	case password == "":
		return finding{}, false
	}
	return f, true
}
