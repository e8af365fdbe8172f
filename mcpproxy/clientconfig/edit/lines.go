package edit

import "bytes"

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
