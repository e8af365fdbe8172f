package text

import (
	"bytes"
	"fmt"
	"strings"
)

// ShellWord writes a word so that a shell reads it as one.
func ShellWord(s string) string {
	s = Printable(s, 4096)
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=:@%+,", r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// QuoteList lists names for a message, at most n of them.
func QuoteList(names []string, n int) string {
	var b strings.Builder
	for i, name := range names {
		if i == n {
			fmt.Fprintf(&b, " and %d more", len(names)-n)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", name)
	}
	return b.String()
}

const maxExcerpt = 200 // bytes

// maxPage is how much of a page is looked at, in bytes.
const maxPage = 64 << 10

// Excerpt returns the beginning of a body as text on one line; of an HTML page
// its title, or else its text.
func Excerpt(body []byte) string {
	body = body[:min(len(body), maxPage)]
	if string(bytes.TrimSpace(body)) == "null" {
		return ""
	}
	s := string(body)
	if strings.HasPrefix(strings.TrimSpace(s), "<") {
		s = pageText(s)
	}
	short := Printable(s, maxExcerpt)
	if len(strings.TrimSpace(s)) > maxExcerpt {
		short += "…"
	}
	return short
}

// pageText returns the title of an HTML page, or else its text. A regular expression for
// elements would look for the end of each again, to the end of the page.
func pageText(page string) string {
	lower := asciiLower(page) // of the same length
	if from, found := contentOf(lower, "title"); found {
		if end := strings.Index(lower[from:], "</title>"); end >= 0 && strings.TrimSpace(page[from:from+end]) != "" {
			return page[from : from+end]
		}
	}
	var b strings.Builder
	ended := map[string]bool{} // names that no element ends with any more
	for i := 0; i < len(page); {
		open := strings.IndexByte(page[i:], '<')
		if open < 0 {
			b.WriteString(page[i:])
			break
		}
		b.WriteString(page[i : i+open])
		i += open
		end := strings.IndexByte(page[i:], '>')
		if end < 0 {
			b.WriteString(page[i:])
			break
		}
		b.WriteByte(' ')
		next := i + end + 1
		for _, name := range []string{"script", "style", "head"} {
			if !isElement(lower[i:], name) || ended[name] {
				continue
			}
			if close := strings.Index(lower[next:], "</"+name+">"); close >= 0 {
				next += close + len(name) + len("</>")
			} else {
				ended[name] = true
			}
		}
		i = next
	}
	return b.String()
}

// contentOf finds where the content of the first element of this name begins.
func contentOf(lower, name string) (from int, found bool) {
	for {
		at := strings.Index(lower[from:], "<"+name)
		if at < 0 {
			return 0, false
		}
		if from += at; isElement(lower[from:], name) {
			end := strings.IndexByte(lower[from:], '>')
			return from + end + 1, end >= 0
		}
		from++
	}
}

// isElement reports whether s begins with an element of this name.
func isElement(s, name string) bool {
	rest, ok := strings.CutPrefix(s, "<"+name)
	return ok && (rest == "" || !(rest[0] >= 'a' && rest[0] <= 'z' || rest[0] >= '0' && rest[0] <= '9' || rest[0] == '-'))
}

// asciiLower is strings.ToLower for ASCII alone, which keeps the length of a text.
func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}
