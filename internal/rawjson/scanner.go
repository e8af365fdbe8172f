// Package rawjson finds its way in JSON text without decoding it: members in
// their order, values as they are written. It is for large texts from outside.
package rawjson

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/bits"
)

// A Scanner checks JSON and finds values in it, in one pass (RFC 8259). Answers of
// servers may have many megabytes: a library either decodes them, or reads them
// byte by byte, or has no bound on depth (BenchmarkScan compares, and
// docs/architecture.md has the figures). Bytes above ASCII count as text, whatever they are.
type Scanner struct {
	Text   []byte
	Offset int

	// Context, if there is one, ends the reading of a long text: what comes next is as if
	// it were not JSON. Who reads looks at its error.
	Context context.Context
	looked  int // up to where the context was looked at
}

const betweenLooks = 64 << 10

// ended looks at the context now and then.
func (s *Scanner) ended() bool {
	if s.Offset-s.looked < betweenLooks {
		return false
	}
	s.looked = s.Offset
	return s.Context != nil && s.Context.Err() != nil
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
	if s.Offset == len(s.Text) || s.Text[s.Offset] != c {
		return false
	}
	s.Offset++
	return true
}

// MaxDepth is how deep values nest at most that encoding/json takes for JSON.
const MaxDepth = 10_000

// Object passes over an object, and calls member at the value of each member,
// which it has to pass over. The name is as it is written, in its quotes.
func (s *Scanner) Object(member func(name []byte) bool) bool {
	if !s.take('{') {
		return false
	}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return false
		}
		s.SkipSpace()
		name := s.Offset
		if !s.str() {
			return false
		}
		quoted := s.Text[name:s.Offset]
		if !s.take(':') || !member(quoted) {
			return false
		}
	}
	return true
}

// List passes over a list, and calls item at each item, which it has to pass
// over.
func (s *Scanner) List(item func() bool) bool {
	if !s.take('[') {
		return false
	}
	for first := true; !s.take(']'); first = false {
		if !first && !s.take(',') || !item() {
			return false
		}
	}
	return true
}

// Value passes over a value that nests no deeper than this, and returns it.
func (s *Scanner) Value(depth int) (value []byte, ok bool) {
	s.SkipSpace()
	from := s.Offset
	ok = s.value(depth)
	return s.Text[from:s.Offset:s.Offset], ok
}

// value passes over a value that nests no deeper than this.
func (s *Scanner) value(depth int) bool {
	s.SkipSpace()
	if s.Offset == len(s.Text) || depth < 0 || s.ended() {
		return false
	}
	switch s.Text[s.Offset] {
	case '{':
		return s.Object(func([]byte) bool { return s.value(depth - 1) })
	case '[':
		return s.List(func() bool { return s.value(depth - 1) })
	case '"':
		return s.str()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	}
	return s.number()
}

func (s *Scanner) word(word string) bool {
	if !bytes.HasPrefix(s.Text[s.Offset:], []byte(word)) {
		return false
	}
	s.Offset += len(word)
	return true
}

func (s *Scanner) number() bool {
	if s.Offset < len(s.Text) && s.Text[s.Offset] == '-' {
		s.Offset++
	}
	if s.Offset < len(s.Text) && s.Text[s.Offset] == '0' {
		s.Offset++
	} else if !s.digits() {
		return false
	}
	if s.Offset < len(s.Text) && s.Text[s.Offset] == '.' {
		s.Offset++
		if !s.digits() {
			return false
		}
	}
	if s.Offset < len(s.Text) && s.Text[s.Offset]|0x20 == 'e' {
		s.Offset++
		if s.Offset < len(s.Text) && (s.Text[s.Offset] == '+' || s.Text[s.Offset] == '-') {
			s.Offset++
		}
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
