package secrets

import "strings"

// flagValue finds the value of an option that is named like a secret, at its dashes: --token=VALUE,
// --token VALUE, "--token", "VALUE".
func flagValue(text string, at int) (finding, bool) {
	if !strings.HasPrefix(text[at:], "--") || at > 0 && (text[at-1] == '-' || isAlnum[text[at-1]] && !endsEscape(text[:at])) {
		return finding{}, false
	}
	end := span(text[:min(len(text), at+maxKey)], at+2, inName)
	if end == len(text) || !isSecretKey(text[at+2:end]) {
		return finding{}, false
	}
	quote := end
	for quote < len(text) && text[quote] == '\\' {
		quote++
	}
	switch {
	case text[end] == '=' && end+1 < len(text):
		return flagEquals(text, at, end+1)
	case text[end] == ' ' && end+1 < len(text) && strings.IndexByte("-[{(<$%", text[end+1]) < 0 && !closesString(text, at, end+1):
		return valueAt(text, end+1, false)
	case quote < len(text) && at > 0 && text[quote] == text[at-1] && isQuote(text[quote]):
		return nextString(text, quote+1)
	}
	return finding{}, false
}

// flagEquals finds the value of --token=VALUE, which may be within quotes as a whole. It needs no digit to
// be told from words.
func flagEquals(text string, at, from int) (finding, bool) {
	f := finding{rule: ruleKey, from: from}
	if at > 0 && isQuote(text[at-1]) {
		start := at - 1
		for start > 0 && text[start-1] == '\\' {
			start--
		}
		f.to = literalAt(text, start).to
	} else if l := literalAt(text, from); l.next > 0 && !closesString(text, at, from) {
		f.from, f.to = l.from, l.to
	} else {
		f.to = from + len(bareWord(text[from:], false))
	}
	return f, f.to > f.from && isValue(text[f.from:f.to])
}

// callValue finds the second argument of a call such as setdefault("API_TOKEN", "VALUE"), of which the
// parenthesis is at a byte.
func callValue(text string, at int) (finding, bool) {
	if at+1 < len(text) && inWord[text[at+1]] {
		return finding{}, false
	}
	quote := blanks(text, at+1)
	for quote < len(text) && text[quote] == '\\' {
		quote++
	}
	if quote == len(text) || !isQuote(text[quote]) || !takesPair(text[nameBefore(text, at):at]) {
		return finding{}, false
	}
	end := span(text[:min(len(text), quote+maxKey)], quote+1, inName)
	if !isSecretKey(text[quote+1 : end]) {
		return finding{}, false
	}
	for end < len(text) && text[end] == '\\' {
		end++
	}
	if end == len(text) || text[end] != text[quote] {
		return finding{}, false
	}
	return nextString(text, end+1)
}

// takesPair reports whether a function with this name is called with a key and its value.
func takesPair(name string) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "get", "getenv", "set", "setdefault", "setenv", "putenv", "append", "header", "add_header", "set_header", "setHeader", "setRequestHeader":
		return true
	}
	return false
}

// nextString finds the string that follows another one, with a comma or blanks between. It is no key.
func nextString(text string, at int) (finding, bool) {
	if at = blanks(text, at); at < len(text) && text[at] == ',' {
		at = blanks(text, at+1)
	}
	l := literalAt(text, at)
	if l.to == l.from || !isValue(text[l.from:l.to]) {
		return finding{}, false
	}
	if next := blanks(text, l.next); next < len(text) && text[next] == ':' {
		return finding{}, false
	}
	return finding{from: l.from, to: l.to, rule: ruleKey}, true
}

// isValue reports whether a text that follows a key can be a secret. It is none if it is another option,
// says where the value comes from, or names the key again.
func isValue(text string) bool {
	return strings.IndexByte("-$<{%", text[0]) < 0 && (len(text) > maxKey || strings.ContainsAny(text, digits) || !isSecretKey(text))
}

// elementValue finds the content of an XML element that is named like a secret, at the beginning of its tag.
func elementValue(text string, at int) (finding, bool) {
	end := span(text[:min(len(text), at+maxKey)], at+1, inName)
	if end == len(text) || text[end] != '>' || !isSecretKey(text[at+1:end]) {
		return finding{}, false
	}
	from := end + 1
	n := strings.IndexByte(text[from:], '<')
	if n <= 0 || !strings.HasPrefix(text[from+n:], "</"+text[at+1:end]) || !isValue(text[from:from+n]) {
		return finding{}, false
	}
	return finding{from: from, to: from + n, rule: ruleKey}, true
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }
