// Package rawjson finds its way in JSON text without decoding it: members in
// their order, values as they are written. It is for large texts from outside.
package rawjson

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"math/bits"
)

// A Scanner checks JSON and finds values in it, in one pass (RFC 8259). Answers of
// servers may have many megabytes: a library either decodes them, or reads them
// byte by byte, or has one bound on depth (BenchmarkScan compares, and
// docs/architecture.md has the figures). Bytes above ASCII count as text, whatever they are.
//
// After an error in the text the loops end, Value returns nil, and OK reports it.
type Scanner struct {
	Text   []byte
	Offset int

	// Depth is how deep a value may nest: an empty list, or a text, nests 0 deep. 0 stands
	// for MaxDepth.
	Depth  int
	Nested int // how deep the last value nests
	// Context, if there is one, ends the reading of a long text: what comes next is as if
	// it were not JSON. Callers look at its error.
	Context context.Context
	looked  int // up to where the context was looked at
	failed  bool
}

const (
	// MaxDepth is how deep values nest at most that encoding/json takes for JSON.
	MaxDepth = 10_000
	// AnyDepth is for values that may nest as deep as they like, so that one that does
	// spoils nothing that stands beside it. It bounds the memory for their brackets.
	AnyDepth = 1 << 20
)

const betweenLooks = 64 << 10

// ended looks at the context now and then.
func (s *Scanner) ended() bool {
	if s.Offset-s.looked < betweenLooks {
		return false
	}
	s.looked = s.Offset
	return s.Context != nil && s.Context.Err() != nil
}

// OK reports whether all that was read is JSON, as far as it was read.
func (s *Scanner) OK() bool { return !s.failed }

// AtEnd reports whether all of the text was read and is JSON.
func (s *Scanner) AtEnd() bool {
	if s.failed {
		return false // Offset is where
	}
	s.SkipSpace()
	return s.Offset == len(s.Text)
}

// SkipSpace passes over white space.
func (s *Scanner) SkipSpace() {
	for s.Offset < len(s.Text) && (s.Text[s.Offset] == ' ' || s.Text[s.Offset] == '\n' || s.Text[s.Offset] == '\r' || s.Text[s.Offset] == '\t') {
		s.Offset++
	}
}

// take passes over one character, if it comes next after white space.
func (s *Scanner) take(c byte) bool {
	s.SkipSpace()
	return s.next(c)
}

// next passes over one character, if it comes next.
func (s *Scanner) next(c byte) bool {
	if s.Offset == len(s.Text) || s.Text[s.Offset] != c {
		return false
	}
	s.Offset++
	return true
}

// Object passes over an object, with a loop over the names of its members as they are
// written, in their quotes. The body of the loop has to pass over the value.
func (s *Scanner) Object(yield func(name []byte) bool) {
	if !s.expect('{') {
		return
	}
	for first := true; !s.take('}'); first = false {
		if !first && !s.expect(',') {
			return
		}
		if name := s.name(); name == nil || !yield(name) || s.failed {
			return
		}
	}
}

// Members passes over an object, with a loop over its members.
func (s *Scanner) Members(yield func(name, value []byte) bool) {
	for name := range s.Object {
		if value := s.Value(); value == nil || !yield(name, value) {
			return
		}
	}
}

// List passes over a list, with a loop over the numbers of its items. The body of the loop
// has to pass over the item.
func (s *Scanner) List(yield func(n int) bool) {
	if !s.expect('[') {
		return
	}
	for n := 0; !s.take(']'); n++ {
		if n > 0 && !s.expect(',') || !yield(n) || s.failed {
			return
		}
	}
}

// Items passes over a list, with a loop over its items.
func (s *Scanner) Items(yield func(n int, value []byte) bool) {
	for n := range s.List {
		if value := s.Value(); value == nil || !yield(n, value) {
			return
		}
	}
}

// Value passes over a value and returns it, or nil if there is none.
func (s *Scanner) Value() []byte {
	s.SkipSpace()
	from := s.Offset
	s.Nested = 0
	s.failed = s.failed || !s.value(cmp.Or(s.Depth, MaxDepth))
	if s.failed {
		return nil
	}
	return s.Text[from:s.Offset:s.Offset]
}

// NestsAtMost reports whether a value nests no deeper than this.
func NestsAtMost(text []byte, depth int) bool {
	return (&Scanner{Text: text}).value(depth)
}

// expect is take of what has to be there.
func (s *Scanner) expect(c byte) bool {
	s.failed = s.failed || !s.take(c)
	return !s.failed
}

// name passes over the name of a member with its colon, and returns it.
func (s *Scanner) name() []byte {
	s.SkipSpace()
	from := s.Offset
	s.failed = s.failed || !s.str()
	to := s.Offset
	if !s.expect(':') {
		return nil
	}
	return s.Text[from:to:to]
}

// value passes over a value that nests no deeper than this. It does not call itself.
func (s *Scanner) value(depth int) bool {
	var some [64]byte
	open := some[:0] // what closes the objects and lists around
	for {
		s.SkipSpace()
		if s.Offset == len(s.Text) || len(open) > depth || s.ended() {
			return false
		}
		s.Nested = max(s.Nested, len(open))
		ok := true
		switch c := s.Text[s.Offset]; c {
		case '{', '[':
			s.Offset++
			if closing := c + 2; !s.take(closing) { // in ASCII, } is { + 2 and ] is [ + 2
				open = append(open, closing)
				if c == '{' && s.name() == nil {
					return false
				}
				continue
			}
		case '"':
			ok = s.str()
		case 't':
			ok = s.word("true")
		case 'f':
			ok = s.word("false")
		case 'n':
			ok = s.word("null")
		default:
			ok = s.number()
		}
		for more := false; ok && !more; { // a value has ended
			if len(open) == 0 {
				return true
			}
			closing := open[len(open)-1]
			if more = s.take(','); more {
				ok = closing == ']' || s.name() != nil
			} else {
				ok = s.take(closing)
				open = open[:len(open)-1]
			}
		}
		if !ok {
			return false
		}
	}
}

func (s *Scanner) word(word string) bool {
	if !bytes.HasPrefix(s.Text[s.Offset:], []byte(word)) {
		return false
	}
	s.Offset += len(word)
	return true
}

func (s *Scanner) number() bool {
	s.next('-')
	if !s.next('0') && !s.digits() || s.next('.') && !s.digits() {
		return false
	}
	if s.next('e') || s.next('E') {
		_ = s.next('+') || s.next('-')
		return s.digits()
	}
	return true
}

func (s *Scanner) digits() bool {
	from := s.Offset
	for s.Offset < len(s.Text) && s.Text[s.Offset]-'0' < 10 {
		s.Offset++
	}
	return s.Offset > from
}

// str passes over a string.
func (s *Scanner) str() bool {
	if s.Offset == len(s.Text) || s.Text[s.Offset] != '"' {
		return false
	}
	for s.Offset++; ; {
		s.plain()
		if s.Offset == len(s.Text) || s.ended() {
			return false
		}
		switch c := s.Text[s.Offset]; {
		case c == '"':
			s.Offset++
			return true
		case c != '\\' || !s.escape():
			return false
		}
	}
}

// plain passes over all that neither ends a string nor is an escape or a control
// character, eight bytes at a time.
func (s *Scanner) plain() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; s.Offset+8 <= len(s.Text); s.Offset += 8 {
		v := binary.LittleEndian.Uint64(s.Text[s.Offset:])
		quote, escape := v^ones*'"', v^ones*'\\'
		// A byte's top bit is set where subtracting from it has borrowed. Above the
		// first such byte it may be set in vain.
		found := ((quote-ones)&^quote | (escape-ones)&^escape | (v-ones*' ')&^v) & tops
		if found != 0 {
			s.Offset += bits.TrailingZeros64(found) / 8
			return
		}
	}
	for s.Offset < len(s.Text) && s.Text[s.Offset] != '"' && s.Text[s.Offset] != '\\' && s.Text[s.Offset] >= ' ' {
		s.Offset++
	}
}

// escape passes over what begins with a backslash.
func (s *Scanner) escape() bool {
	if s.Offset+1 >= len(s.Text) {
		return false
	}
	c := s.Text[s.Offset+1]
	s.Offset += 2
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		if s.Offset+4 > len(s.Text) {
			return false
		}
		s.Offset += 4
		return isHex(s.Text[s.Offset-4]) && isHex(s.Text[s.Offset-3]) && isHex(s.Text[s.Offset-2]) && isHex(s.Text[s.Offset-1])
	}
	return false
}

func isHex(c byte) bool { return c-'0' < 10 || c|0x20-'a' < 6 }
