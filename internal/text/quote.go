package text

import (
	"bytes"
	"fmt"
	"strings"

	"golang.org/x/net/html"
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
func QuoteList[S ~string](names []S, n int) string {
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
		s = pageText(body)
	}
	short := Printable(s, maxExcerpt)
	if len(strings.TrimSpace(s)) > maxExcerpt {
		short += "…"
	}
	return short
}

// pageText returns the title of an HTML page, or else its text.
func pageText(page []byte) string {
	var b strings.Builder
	inside := map[string]bool{}
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		switch kind := z.Next(); kind {
		case html.ErrorToken: // the end
			return b.String()
		case html.TextToken:
			switch written := string(z.Raw()); {
			case inside["title"] && strings.TrimSpace(written) != "":
				return written
			case !inside["script"] && !inside["style"] && !inside["head"]:
				b.WriteString(written)
			}
		default:
			name, _ := z.TagName()
			inside[string(name)] = kind == html.StartTagToken
			b.WriteByte(' ')
		}
	}
}
