// Package text makes text from outside fit to show: it removes what a terminal
// would obey and what a reader cannot see, cuts it and quotes it. It also compares names:
// with a pattern, and with others for the ones most like them. Sizes are read and written here.
package text

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Printable makes untrusted text fit for one line of a message: valid UTF-8, no control
// characters (a terminal would obey them), at most n bytes.
func Printable(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(Clip(s, n), "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// Clip cuts s to at most n bytes, never inside a character.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Bound makes s valid UTF-8 and cuts it to at most n bytes, and says how much is
// left out.
func Bound(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + fmt.Sprintf(" [… %d bytes left out …]", len(s)-n)
}

// OneLine makes untrusted text one line without the characters that a terminal would obey, and
// cuts it to at most most bytes, with a note.
func OneLine(s string, most int) string {
	return Bound(strings.Join(strings.Fields(strings.Map(DropControl, s)), " "), most)
}

// DropControl is a mapping for strings.Map that leaves out what a terminal would
// obey.
func DropControl(r rune) rune {
	if r == '\n' || r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return -1
}

// Duration writes a duration as settings do: 30m, not 30m0s.
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Size writes a number of bytes as a person would.
func Size(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(unit.bytes)), ".0") + " " + unit.name
		}
	}
	return Plural(int(n), "byte")
}

// ParseSize reads a size in bytes, with k, m, g or t for powers of 1024, as
// podman and docker take them.
func ParseSize(s string) (int64, error) {
	t := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(s), "b"), "i")
	shift := 0
	if i := strings.IndexAny(t, "kmgt"); i >= 0 && i == len(t)-1 {
		shift = map[byte]int{'k': 10, 'm': 20, 'g': 30, 't': 40}[t[i]]
		t = t[:i]
	}
	n, err := strconv.ParseFloat(t, 64)
	if err != nil || !(n > 0 && n*float64(int64(1)<<shift) <= 1<<60) { // ParseFloat takes NaN
		return 0, errors.New("not a size; write a number with k, m or g, such as 512m")
	}
	return int64(n * float64(int64(1)<<shift)), nil
}

// Grouped writes a number with commas between its thousands.
func Grouped(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%s,%03d", Grouped(n/1000), n%1000)
}

// Plural returns a count with a noun, in the plural unless it is 1.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// maxExpanded bounds one expanded text, in bytes; a variable can be named many times.
const maxExpanded = 1 << 20

// Expand replaces each variable in s. Files write variables in different ways: reference matches
// one. value gets the match and its groups, and returns the text in its place. Expand returns
// an error of value, and one for a text of more than 1 MiB.
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
