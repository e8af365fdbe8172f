package text

import (
	"errors"
	"regexp"
	"strings"
)

// maxExpanded bounds one expanded text, in bytes; a variable can be named many times.
const maxExpanded = 1 << 20

// Expand replaces each variable in s. Files differ in how they write one, so reference
// says what is one; value gets a match of it and its groups, and returns the text in its
// place. An error of value is that of Expand, as is a text of more than 1 MiB.
func Expand(s string, reference *regexp.Regexp, value func(match []string) (string, error)) (string, error) {
	var b strings.Builder
	last := 0
	for _, at := range reference.FindAllStringSubmatchIndex(s, -1) {
		match := make([]string, len(at)/2)
		for i := range match {
			match[i] = s[max(at[2*i], 0):max(at[2*i+1], 0)]
		}
		v, err := value(match)
		if err != nil {
			return "", err
		}
		if b.Len()+at[0]-last+len(v) > maxExpanded {
			return "", errors.New("is too long when its variables are expanded")
		}
		b.WriteString(s[last:at[0]])
		b.WriteString(v)
		last = at[1]
	}
	b.WriteString(s[last:])
	return b.String(), nil
}
