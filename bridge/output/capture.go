package output

import (
	"bytes"
	"io"
	"sync"
)

var newline = []byte("\n")

// A capture keeps the head and the tail of a stream: the start shows what
// happened, the end how it ended. It accepts any amount and holds at most its
// limit.
type capture struct {
	mu      sync.Mutex
	tee     io.Writer // also gets everything, if not nil
	whole   *overflow // also gets everything, once it exceeds the limit; may be nil
	headMax int       // bytes of head
	ring    int       // bytes of tail, at most
	head    []byte
	tail    []byte // a ring once it is full
	next    int    // where the ring is written next
	total   int64  // bytes of the stream
	ends    int64  // line ends of the stream
}

// newCapture keeps at most limit bytes, three quarters of them of the end.
func newCapture(limit int) *capture {
	head := max(limit/4, 1)
	return &capture{headMax: head, ring: max(limit-head, 1)}
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

// keepWhole has o keep everything, if all of it is still here.
func (c *capture) keepWhole(o *overflow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total <= c.limit() {
		c.whole = o
	}
}

func (c *capture) limit() int64 { return int64(c.headMax + c.ring) }

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	if c.whole != nil && c.total+int64(n) > c.limit() {
		if c.total <= c.limit() { // nothing has been dropped yet
			c.whole.write(c.head, c.tail)
		}
		c.whole.write(p)
	}
	c.total += int64(n)
	c.ends += int64(bytes.Count(p, newline))
	if c.tee != nil {
		// A reader that went away must not stop the run.
		_, _ = c.tee.Write(p)
	}
	room := min(c.headMax-len(c.head), len(p))
	c.head = append(c.head, p[:room]...)
	p = p[room:]
	if len(p) >= c.ring {
		c.tail, c.next = append(c.tail[:0], p[len(p)-c.ring:]...), 0
		return n, nil
	}
	for len(p) > 0 {
		if len(c.tail) < c.ring {
			room := min(c.ring-len(c.tail), len(p))
			c.tail = append(c.tail, p[:room]...)
			p = p[room:]
			continue
		}
		k := copy(c.tail[c.next:], p)
		c.next = (c.next + k) % c.ring
		p = p[k:]
	}
	return n, nil
}

// size returns how many bytes the stream has had by now.
func (c *capture) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
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
