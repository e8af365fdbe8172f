package edit

import (
	"bytes"
	"slices"
)

// lineEnd is what ends the lines of a text.
func lineEnd(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// lineStart finds the beginning of the line that a place is in.
func lineStart(data []byte, at int) int { return bytes.LastIndexByte(data[:at], '\n') + 1 }

// nextLine finds the beginning of the line after the one that a place is in.
func nextLine(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(data)
}

// indentOf is the blank that the line of a place begins with.
func indentOf(data []byte, at int) string {
	line := data[lineStart(data, at):]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// blank reports whether there is nothing but spaces.
func blank(data []byte) bool { return len(bytes.TrimSpace(data)) == 0 }

// splice joins parts into a text of its own.
func splice(parts ...[]byte) []byte { return slices.Concat(parts...) }

// ownComments finds where the comment lines begin that stand directly above the
// line at a place: they are taken to be about it.
func ownComments(data []byte, at int, floor int, comment func(line []byte) bool) int {
	start := lineStart(data, at)
	for start > floor {
		above := lineStart(data, start-1)
		if above < floor || !comment(bytes.TrimSpace(data[above:start])) {
			break
		}
		start = above
	}
	return start
}
