package consent

import "strings"

// markdown writes for clients, which may show a question as Markdown: a picture in it would
// be loaded, and tell its server what is in the arguments. So nothing is Markdown, HTML or a
// link, except that a line is inline code, which a reader of plain text understands too.
type markdown struct{}

func (markdown) writeInString(b *strings.Builder, r rune) {
	if isPlain(b.String(), r) {
		b.WriteRune(r)
	} else {
		writeEscape(b, r)
	}
}

// line leaves brackets, quotes and stars as they are, since rules of a policy are full of them:
// they mean nothing in inline code. Not every client knows that, so links, pictures and HTML
// are broken up even so.
func (m markdown) line(s string) string {
	if s == "" {
		return quote(m, s) // two backticks would begin code that ends at the next two
	}
	var b strings.Builder
	b.WriteByte('`')
	runes := append([]rune(s), 0)
	for i, r := range runes[:len(runes)-1] {
		if isCode(b.String(), r, runes[i+1]) {
			b.WriteRune(r)
		} else {
			writeEscape(&b, r)
		}
	}
	b.WriteByte('`')
	return b.String()
}

// message breaks up pictures, HTML, and links that look like others.
func (markdown) message(s string) string {
	return strings.NewReplacer("[", `\u005b`, "<", `\u003c`).Replace(cleanMessage(s))
}

func (markdown) joinsLines() bool { return true }

// isCode reports whether a character may stand in inline code as it is, after what is
// written and before what is next.
func isCode(written string, r, next rune) bool {
	switch r {
	case '"', '*', '>', '!', '~', ']', '_', '=':
		return true
	case '<': // before anything else it may begin a tag
		return next == ' ' || next == '='
	case '[': // ![picture], [text][name]
		return !strings.HasSuffix(written, "!") && !afterBracket(written)
	case '(', ':': // [text](address), [name]: address
		return !afterBracket(written)
	}
	return isPlain(written, r)
}

func afterBracket(written string) bool {
	return strings.HasSuffix(strings.TrimRight(written, " "), "]")
}

// marks are the printable characters that Markdown, HTML, links and formulas are made
// of. In a formula, such as $a%b$, a client would leave the b out.
const marks = "\"\\`*[]<>!|~&#@$^"

func isPlain(written string, r rune) bool {
	return isPrintable(r) && !strings.ContainsRune(marks, r) && !wouldMark(written, r)
}

// wouldMark reports whether r would mean something after what is written: :// and www.
// are links by themselves (GitHub Flavored Markdown, Autolinks), an underscore that no
// letter stands before begins emphasis, and some dialects mark or hide what is between
// two double signs.
func wouldMark(written string, r rune) bool {
	last := written[max(0, len(written)-3):]
	switch r {
	case '=', '+', '%':
		return strings.HasSuffix(last, string(r))
	case '/':
		return strings.HasSuffix(last, ":/")
	case '.':
		return strings.EqualFold(last, "www")
	case '_':
		return last == "" || !isWord(last[len(last)-1])
	}
	return false
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}
