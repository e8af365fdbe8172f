package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxLines bounds the lines of a stream in a result. Each takes 16 bytes more than
// its text: a million empty lines would take 16 MiB for 1 MiB of output.
const maxLines = 200_000

var newline = []byte("\n")

// A capture keeps the head and the tail of a stream: the start shows what
// happened, the end how it ended. It accepts any amount and holds at most its
// limit.
type capture struct {
	mu    sync.Mutex
	tee   io.Writer // also gets everything, if not nil
	whole *overflow // also gets everything, once it exceeds the limit; may be nil
	half  int
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring is written next
	total int64
}

// newCapture keeps at most limit bytes.
func newCapture(limit int) *capture {
	return &capture{half: max(limit/2, 1)}
}

// passOn writes the kept bytes, and from now on everything, to tee if it is not
// nil.
func (c *capture) passOn(tee io.Writer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tee = tee; tee != nil {
		head, tail, _ := c.kept()
		_, _ = tee.Write(append(bytes.Clone(head), tail...))
	}
}

// KeepWhole has o keep everything, if all of it is still here.
func (c *capture) keepWhole(o *overflow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total <= 2*int64(c.half) {
		c.whole = o
	}
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	if c.whole != nil && c.total+int64(n) > 2*int64(c.half) {
		if c.total <= 2*int64(c.half) { // nothing has been dropped yet
			c.whole.write(c.head, c.tail)
		}
		c.whole.write(p)
	}
	c.total += int64(n)
	if c.tee != nil {
		// A reader that went away must not stop the run.
		_, _ = c.tee.Write(p)
	}
	room := min(c.half-len(c.head), len(p))
	c.head = append(c.head, p[:room]...)
	p = p[room:]
	if len(p) >= c.half {
		c.tail, c.next = append(c.tail[:0], p[len(p)-c.half:]...), 0
		return n, nil
	}
	for len(p) > 0 {
		if len(c.tail) < c.half {
			room := min(c.half-len(c.tail), len(p))
			c.tail = append(c.tail, p[:room]...)
			p = p[room:]
			continue
		}
		k := copy(c.tail[c.next:], p)
		c.next = (c.next + k) % c.half
		p = p[k:]
	}
	return n, nil
}

// Bytes returns what was kept and how many bytes in the middle were not.
func (c *capture) Bytes() (head, tail []byte, omitted int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept()
}

func (c *capture) kept() (head, tail []byte, omitted int64) {
	tail = append(append([]byte{}, c.tail[c.next:]...), c.tail[:c.next]...)
	return c.head, tail, c.total - int64(len(c.head)) - int64(len(tail))
}

// Lines returns what was kept as lines of valid UTF-8, without blank lines at
// the ends, and whether something is missing. Where it is, a line says how
// much.
func (c *capture) Lines() (lines []string, truncated bool) {
	head, tail, omitted := c.Bytes()
	if omitted == 0 {
		whole := append(bytes.Clone(head), tail...)
		if bytes.Count(whole, newline) <= maxLines {
			return splitLines(whole), false
		}
		head, tail = whole, whole
	}
	head, tail = firstLines(head, maxLines/2), lastLines(tail, maxLines/2)
	omitted = c.total - int64(len(head)) - int64(len(tail))
	lines = splitLines(trimEnd(head))
	lines = append(lines, fmt.Sprintf("[… %d bytes left out here; the stream had %d bytes%s …]", omitted, c.total, c.whole.said()))
	return append(lines, splitLines(trimStart(tail))...), true
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
