package text

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

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
