package text

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
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

var (
	markup = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?is)<(script|style|head)\b.*?</(script|style|head)>|<[^>]*>`)
	})
	title = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
	})
)

const maxExcerpt = 200 // bytes

// Excerpt returns the beginning of a body as text on one line; of an HTML page
// its title, or else its text.
func Excerpt(body []byte) string {
	if string(bytes.TrimSpace(body)) == "null" {
		return ""
	}
	s := string(body)
	if trimmed := strings.TrimSpace(s); strings.HasPrefix(trimmed, "<") {
		if m := title().FindStringSubmatch(s); m != nil && strings.TrimSpace(m[1]) != "" {
			s = m[1]
		} else {
			s = markup().ReplaceAllString(s, " ")
		}
	}
	short := Printable(s, maxExcerpt)
	if len(strings.TrimSpace(s)) > maxExcerpt {
		short += "…"
	}
	return short
}
