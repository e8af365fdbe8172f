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
	if len(key) < len("pin") {
		return false
	}
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
	start, end := keyBefore(text, at)
	name := text[start:end]
	if !isSecretKey(name) && !isSecretKey(otherName(text, start, end, at)) {
		return finding{}, false
	}
	from := at + 1
	for from < len(text) && (text[from] == ' ' || text[from] == '\t') {
		from++
	}
	if from == len(text) || !strings.ContainsAny(text[end:at], `"'`) && closesString(text, start, from) {
		return finding{}, false
	}
	return valueAt(text, from, strings.EqualFold(name, "authorization"))
}

// keyBefore returns where the name begins and ends that is before a byte, with quotes and spaces between.
func keyBefore(text string, at int) (start, end int) {
	end = at
	for end > 0 && strings.IndexByte(" \"'\\]", text[end-1]) >= 0 {
		end--
	}
	start = nameBefore(text, end)
	return start, end
}

// nameBefore returns where the name begins that ends before a byte, without the escape of a line feed.
func nameBefore(text string, end int) int {
	start := end
	for start > 0 && end-start < maxKey && (inWord[text[start-1]] || text[start-1] == '-' || text[start-1] == '.') {
		start--
	}
	if start > 0 && start < end && text[start-1] == '\\' && strings.IndexByte("nrt", text[start]) >= 0 {
		start++
	}
	return start
}

// otherName returns the name that stands for the key at start, of which the colon or equals sign is at:
// that of a Python parameter whose type the key is, or what another key says of the key "value".
func otherName(text string, start, end, at int) string {
	switch name := text[start:end]; {
	case len(name) == len("value") && strings.EqualFold(name, "value"):
		return pairedName(text, start)
	case text[at] == '=' && isType(name):
		return annotatedName(text, end)
	}
	return ""
}

// isType reports whether a type in Python or TypeScript ends with a name and may be that of a string.
func isType(name string) bool {
	switch name {
	case "str", "bytes", "string", "Any", "None", "Final", "SecretStr":
		return true
	}
	return false
}

// annotatedName returns the name before a type that ends at a byte: token: Annotated[str | None].
func annotatedName(text string, end int) string {
	for at := end - 1; at >= 0 && end-at <= maxKey; at-- {
		switch c := text[at]; {
		case c == ':':
			from, to := keyBefore(text, at)
			return text[from:to]
		case !inWord[c] && strings.IndexByte(" .,|[", c) < 0:
			return ""
		}
	}
	return ""
}

// pairedName returns what a pair before the key at start has for a name: {"name": "token", "value": …},
// <add key="token" value="…">, or the same in YAML.
func pairedName(text string, start int) string {
	end := start
	for end > 0 && start-end < maxKey {
		if n := blankBefore(text[:end]); n > 0 {
			end -= n
		} else if strings.IndexByte("\"'\\,", text[end-1]) >= 0 {
			end--
		} else {
			break
		}
	}
	from := nameBefore(text, end)
	at := from
	for at > 0 && from-at < maxKey && strings.IndexByte(" \"'\\", text[at-1]) >= 0 {
		at--
	}
	if at == 0 || text[at-1] != ':' && text[at-1] != '=' {
		return ""
	}
	switch keyFrom, keyTo := keyBefore(text, at-1); strings.ToLower(text[keyFrom:keyTo]) {
	case "name", "key", "header":
		return text[from:end]
	}
	return ""
}

// closesString reports whether the quote at from, after a name in no quotes, ends a string that has the
// name in it and does not begin a value: input("Password: ").
func closesString(text string, name, from int) bool {
	at := from
	if text[at] == '(' {
		at++
	}
	for at < len(text) && text[at] == '\\' {
		at++
	}
	if at == len(text) || text[at] != '"' && text[at] != '\'' || at+1 < len(text) && strings.IndexByte("),]};:+%. \\\r\n", text[at+1]) < 0 {
		return false
	}
	line := text[max(0, name-maxLook):name]
	line = line[strings.LastIndexByte(line, '\n')+1:]
	if _, after, ok := strings.CutLast(line, `\n`); ok {
		line = after
	}
	return strings.Count(line, text[at:at+1])%2 == 1
}
