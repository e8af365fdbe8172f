package secrets

import "strings"

// isSecretKey reports whether a key is named like a secret: api_key, apiKey, X-API-Key, password2.
func isSecretKey(name string) bool {
	var b [64]byte
	n := 0
	for i := 0; i < len(name) && n < len(b); i++ {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			b[n] = c + 'a' - 'A'
			n++
		case isAlnum[c]:
			b[n] = c
			n++
		}
	}
	key := string(b[:n])
	for _, part := range []string{"password", "passwd", "passphrase", "secret", "apikey", "credential"} {
		if strings.Contains(key, part) {
			return true
		}
	}
	for _, end := range []string{"token", "tokens", "authorization", "accesskey", "privatekey", "signingkey", "encryptionkey", "cookie", "passcode", "pwd"} {
		if strings.HasSuffix(key, end) {
			return !isPageToken(key)
		}
	}
	return key == "auth" || key == "bearer" || key == "pin" || key == "otp"
}

// isPageToken reports whether a token but says where a list goes on, or how many there are.
func isPageToken(key string) bool {
	for _, of := range []string{"page", "next", "sync", "continuation", "max", "total", "input", "output"} {
		if strings.Contains(key, of) {
			return true
		}
	}
	return false
}

// maxKey bounds how far back the name of a key is looked for.
const maxKey = 64

// keyValue finds the value of a secret key, of which the colon or equals sign is at: in JSON, in
// Python, in the environment or a header.
func keyValue(text string, at int) (finding, bool) {
	if at+1 < len(text) && text[at+1] == '=' || at > 0 && strings.IndexByte("=!<>:", text[at-1]) >= 0 { // a comparison
		return finding{}, false
	}
	name := keyBefore(text, at)
	if name == "" || !isSecretKey(name) {
		return finding{}, false
	}
	from := at + 1
	for from < len(text) && (text[from] == ' ' || text[from] == '\t') {
		from++
	}
	if from == len(text) {
		return finding{}, false
	}
	return valueAt(text, from, strings.EqualFold(name, "authorization"))
}

// keyBefore returns the name that ends before a byte, with quotes and spaces between.
func keyBefore(text string, at int) string {
	end := at
	for end > 0 && (text[end-1] == ' ' || text[end-1] == '"' || text[end-1] == '\'' || text[end-1] == '\\' || text[end-1] == ']') {
		end--
	}
	start := end
	for start > 0 && end-start < maxKey && (inWord[text[start-1]] || text[start-1] == '-' || text[start-1] == '.') {
		start--
	}
	return text[start:end]
}

// valueAt finds the value that begins at a byte: a string, a list or object, or a bare word that has
// a digit.
func valueAt(text string, from int, header bool) (finding, bool) {
	f := finding{rule: ruleKey}
	start := from
	for start < len(text) && start-from < 3 && isAlnum[text[start]] { // b"", rb''
		start++
	}
	slashes := start
	for slashes < len(text) && text[slashes] == '\\' {
		slashes++
	}
	switch {
	case slashes < len(text) && (text[slashes] == '"' || text[slashes] == '\''):
		f.from, f.to = stringAt(text, slashes, slashes-start)
		return f, f.to > f.from
	case text[from] == '[' || text[from] == '{':
		f.from, f.to, f.quoted = from, closing(text, from), true
		return f, true
	}
	word := bareWord(text[from:], header)
	if len(word) < 4 || !strings.ContainsAny(word[:min(len(word), maxBare)], digits) || strings.ContainsAny(word, "([{") {
		return f, false
	}
	f.from, f.to = from, from+len(word)
	f.quoted = isNumber(word)
	return f, true
}

// maxBare is how far a bare word is looked at for a digit, and how long it is if it has none there.
const maxBare = 512

// bareWord returns the word that a text begins with; the value of a header goes on over spaces.
func bareWord(text string, header bool) string {
	const ends = "\t\r\n\"'\\,;&)}]"
	for end := range len(text) {
		switch c := text[end]; {
		case c == ' ' && !header, strings.IndexByte(ends, c) >= 0, end == maxBare && !strings.ContainsAny(text[:end], digits):
			return text[:end]
		}
	}
	return text
}

func isNumber(word string) bool { return strings.Trim(word, "0123456789.+-eE") == "" }

// stringAt returns where the content of a quoted string begins and ends. The quote, which may be
// three of them, has so many backslashes before it.
func stringAt(text string, at, slashes int) (from, to int) {
	quote := text[at : at+1]
	if strings.HasPrefix(text[at:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	from = at + len(quote)
	for to = from; to < len(text); to++ {
		if !strings.HasPrefix(text[to:], quote) {
			continue
		}
		before := to
		for before > from && text[before-1] == '\\' {
			before--
		}
		if n := to - before; n == slashes || n < slashes || slashes == 0 && n%2 == 0 {
			return from, before + max(0, n-slashes)
		}
	}
	return from, len(text)
}

// closing returns the end of a list or an object.
func closing(text string, from int) int {
	depth := 0
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			_, i = stringAt(text, i, 0)
		}
	}
	return len(text)
}
