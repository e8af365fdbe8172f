package output

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/text"
)

// maxLines bounds the lines of a stream in a result. Each takes 16 bytes more than
// its text: a million empty lines would take 16 MiB for 1 MiB of output.
const maxLines = 200_000

// Lines returns what was kept of both streams as lines of valid UTF-8, without blank
// lines at the ends. Their text has at most the limit of Open together, a quarter of
// it for stderr. Where something is missing, a line says how much, and where all of
// the stream is.
func (w *Pipes) Lines() (stdout, stderr []string, cut bool) {
	roomOut, roomErr := w.rooms()
	stdout, cutOut := w.Stdout.lines(roomOut)
	stderr, cutErr := w.Stderr.lines(roomErr)
	return stdout, stderr, cutOut || cutErr
}

// rooms returns how many bytes of the streams a result may have.
func (w *Pipes) rooms() (stdout, stderr int) {
	limit := w.limit
	if !w.outSeen {
		limit -= w.taken
	}
	stderr = limit / 4
	return limit - int(min(w.Stderr.size(), int64(stderr))), stderr
}

// escapedSize is what a control character takes in JSON, as \u001b does.
const escapedSize = 6

// roomFor returns how many bytes of what was kept of a stream fit into room when its
// control characters are written as in JSON, which the structured content of a result is.
func roomFor(room int, head, tail []byte) int {
	kept, controls := len(head)+len(tail), 0
	for _, part := range [][]byte{head, tail} {
		for _, b := range part {
			if b < ' ' && b != '\n' && b != '\t' && b != '\r' {
				controls++
			}
		}
	}
	return room * kept / max(kept+controls*(escapedSize-1), 1)
}

// fits reports whether a result with so much room has all of the stream.
func (c *capture) fits(room int) bool { return c.total <= int64(room) && c.ends <= maxLines }

// lines returns at most so many bytes of what was kept as lines, and whether
// something is missing.
func (c *capture) lines(room int) (lines []string, cut bool) {
	head, tail, omitted := c.Bytes()
	room = roomFor(room, head, tail)
	if omitted == 0 {
		whole := append(bytes.Clone(head), tail...)
		if c.fits(room) {
			return splitLines(whole), false
		}
		head, tail = whole, whole
	}
	head = wholeFirstLines(firstLines(head[:min(len(head), room/4)], maxLines/4))
	tail = wholeLastLines(lastLines(tail[max(0, len(tail)-(room-room/4)):], maxLines-maxLines/4))
	size := c.total - int64(len(head)+len(tail))
	ends := c.ends - int64(bytes.Count(head, newline)+bytes.Count(tail, newline))
	lines = append(splitLines(head), "… "+leftOut(size, ends)+c.whole.said())
	return append(lines, splitLines(tail)...), true
}

// leftOut says how much is missing.
func leftOut(size, lines int64) string {
	if lines == 0 {
		return text.Size(size) + " left out"
	}
	return text.Grouped(lines) + " lines (" + text.Size(size) + ") left out"
}

// wholeFirstLines removes the last line of the beginning of a stream, which is cut,
// unless it is so long that too little would be left.
func wholeFirstLines(b []byte) []byte {
	if end := bytes.LastIndexByte(b, '\n') + 1; end > len(b)/2 {
		return b[:end]
	}
	return trimEnd(b)
}

// wholeLastLines removes the first line of the end of a stream in the same way.
func wholeLastLines(b []byte) []byte {
	if start := bytes.IndexByte(b, '\n') + 1; start > 0 && start < len(b)/2 {
		return b[start:]
	}
	return trimStart(b)
}

// firstLines returns the first n lines of text.
func firstLines(text []byte, n int) []byte {
	end := 0
	for ; n > 0; n-- {
		length := bytes.IndexByte(text[end:], '\n')
		if length < 0 {
			return text
		}
		end += length + 1
	}
	return text[:end]
}

// lastLines returns the last n lines of text.
func lastLines(text []byte, n int) []byte {
	start := len(text)
	for ; n > 0; n-- {
		if start = bytes.LastIndexByte(text[:start], '\n'); start < 0 {
			return text
		}
	}
	return text[start+1:]
}

// trimEnd removes the first bytes of a character whose rest was cut.
func trimEnd(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if last := b[len(b)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// trimStart removes the last bytes of a character whose start was cut.
func trimStart(b []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
		b = b[1:]
	}
	return b
}

// splitLines cuts text into lines. Lines of white space are kept inside (the
// text may be a table) and dropped at the ends.
func splitLines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	lines := strings.Split(strings.ToValidUTF8(string(b), "\uFFFD"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
