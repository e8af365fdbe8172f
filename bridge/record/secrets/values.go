package secrets

import "strings"

// valueAt finds the value that begins at a byte: a string, strings in parentheses, a list or object, or a
// bare word that has a digit.
func valueAt(text string, from int, header bool) (finding, bool) {
	f := finding{rule: ruleKey}
	if l := literalAt(text, from); l.next > 0 {
		f.from, f.to = l.from, l.to
		return f, f.to > f.from
	}
	switch text[from] {
	case '(':
		f.from, f.to = stringsAfter(text, from+1)
		return f, f.to > f.from
	case '[', '{':
		if strings.HasPrefix(text[from:], "{{") { // a template says where it comes from
			return f, false
		}
		near := text[from:min(len(text), from+maxBare)]
		if !strings.ContainsAny(near[:closing(near, 0)], `"'`+digits) { // {}, or {token!r} in an f-string
			return f, false
		}
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

// stringsAfter returns where the content of the strings begins and ends that are at a byte, with blanks
// and commas between.
func stringsAfter(text string, at int) (from, to int) {
	for first := (literal{}); ; {
		l := literalAt(text, blanks(text, at))
		if l.next == 0 || to > 0 && l.slashes != first.slashes {
			return from, to
		}
		if to == 0 {
			first, from = l, l.from
		}
		to = l.to
		if at = blanks(text, l.next); at < len(text) && text[at] == ',' {
			at++
		}
	}
}

// A literal is a string in quotes.
type literal struct {
	from, to int // of its content
	next     int // the byte after its quote
	slashes  int // before each of its quotes
}

// literalAt returns the literal at a byte, a zero one if there is none.
func literalAt(text string, at int) literal {
	for n := 0; at < len(text) && n < 2 && strings.IndexByte("bBrRuUfF", text[at]) >= 0; n++ { // b"", rb''
		at++
	}
	quote := at
	for quote < len(text) && text[quote] == '\\' {
		quote++
	}
	if quote == len(text) || text[quote] != '"' && text[quote] != '\'' {
		return literal{}
	}
	l := literal{slashes: quote - at}
	l.from, l.to = stringAt(text, quote, l.slashes)
	l.next = l.to
	for l.next < len(text) && text[l.next] == '\\' {
		l.next++
	}
	l.next = min(len(text), l.next+l.from-quote)
	return l
}

// blanks returns the end of the blanks, line feeds and their escapes that begin at a byte.
func blanks(text string, at int) int {
	for {
		n := blankAt(text, at)
		if n == 0 {
			return at
		}
		at += n
	}
}

// blankAt returns how long a blank or a line feed at a byte is, with backslashes before it; 0 if there is none.
func blankAt(text string, at int) int {
	end := at
	for end < len(text) && text[end] == '\\' {
		end++
	}
	if end < len(text) && (strings.IndexByte(" \t\r\n", text[end]) >= 0 || end > at && strings.IndexByte("nrt", text[end]) >= 0) {
		return end + 1 - at
	}
	return 0
}

// blankBefore returns how long a blank or a line feed is that a text ends with.
func blankBefore(text string) int {
	n := len(text)
	switch {
	case n > 0 && strings.IndexByte(" \t\r\n", text[n-1]) >= 0:
		return 1
	case n > 1 && text[n-2] == '\\' && strings.IndexByte("nrt", text[n-1]) >= 0:
		return 2
	}
	return 0
}

// maxBare is how far a bare word or a list is looked at for a digit, and how long a word is that has none there.
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
