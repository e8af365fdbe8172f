package bridge

import (
	"fmt"
	"strings"
	"unicode"
)

// boundText cuts s to at most n bytes, and says so.
func boundText(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + fmt.Sprintf(" [… %d bytes left out …]", len(s)-n)
}

func oneLine(s string, most int) string {
	return boundText(strings.Join(strings.Fields(strings.Map(dropControl, s)), " "), most)
}

// dropControl leaves out what a terminal would obey.
func dropControl(r rune) rune {
	if r == '\n' || r == '\t' || unicode.IsPrint(r) {
		return r
	}
	return -1
}

// sizeText writes a number of bytes as a person would.
func sizeText(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(unit.bytes)), ".0") + " " + unit.name
		}
	}
	return plural(int(n), "byte")
}
