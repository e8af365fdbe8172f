package mcpproxy

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// A scan checks JSON and finds its way in it, in one pass (RFC 8259). It is for
// texts of which there may be many megabytes, such as what servers answer: a
// library either decodes them or takes them byte by byte. Bytes above ASCII count
// as text, whatever they are.
type scan struct {
	text []byte
	at   int
}

// blank passes over white space.
func (s *scan) blank() {
	for s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\n' || s.text[s.at] == '\r' || s.text[s.at] == '\t') {
		s.at++
	}
}

// take passes over one character, if it comes next after white space.
func (s *scan) take(c byte) bool {
	s.blank()
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// anyDepth is how deep values nest at most that encoding/json takes for JSON.
const anyDepth = 10_000

// object passes over an object, and calls member at the value of each member,
// which it has to pass over. The name is as it is written, in its quotes.
func (s *scan) object(member func(name []byte) bool) bool {
	if !s.take('{') {
		return false
	}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return false
		}
		s.blank()
		name := s.at
		if !s.str() {
			return false
		}
		quoted := s.text[name:s.at]
		if !s.take(':') || !member(quoted) {
			return false
		}
	}
	return true
}

// list passes over a list, and calls item at each item, which it has to pass
// over.
func (s *scan) list(item func() bool) bool {
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

// part passes over a value that nests no deeper than this, and returns it.
func (s *scan) part(depth int) (value []byte, ok bool) {
	s.blank()
	from := s.at
	ok = s.value(depth)
	return s.text[from:s.at:s.at], ok
}

// value passes over a value that nests no deeper than this.
func (s *scan) value(depth int) bool {
	s.blank()
	if s.at == len(s.text) || depth < 0 {
		return false
	}
	switch s.text[s.at] {
	case '{':
		return s.object(func([]byte) bool { return s.value(depth - 1) })
	case '[':
		return s.list(func() bool { return s.value(depth - 1) })
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

func (s *scan) word(word string) bool {
	if !bytes.HasPrefix(s.text[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	return true
}

func (s *scan) number() bool {
	if s.at < len(s.text) && s.text[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

func (s *scan) digits() bool {
	from := s.at
	for s.at < len(s.text) && s.text[s.at]-'0' < 10 {
		s.at++
	}
	return s.at > from
}

// str passes over a string.
func (s *scan) str() bool {
	if s.at == len(s.text) || s.text[s.at] != '"' {
		return false
	}
	for s.at++; ; {
		s.plain()
		if s.at == len(s.text) {
			return false
		}
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return true
		case c != '\\' || !s.escape():
			return false
		}
	}
}

// plain passes over all that neither ends a string nor is an escape or a control
// character, eight bytes at a time.
func (s *scan) plain() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; s.at+8 <= len(s.text); s.at += 8 {
		v := binary.LittleEndian.Uint64(s.text[s.at:])
		quote, escape := v^ones*'"', v^ones*'\\'
		// A byte's top bit is set where subtracting from it has borrowed. Above the
		// first such byte it may be set in vain.
		found := ((quote-ones)&^quote | (escape-ones)&^escape | (v-ones*' ')&^v) & tops
		if found != 0 {
			s.at += bits.TrailingZeros64(found) / 8
			return
		}
	}
	for s.at < len(s.text) && s.text[s.at] != '"' && s.text[s.at] != '\\' && s.text[s.at] >= ' ' {
		s.at++
	}
}

// escape passes over what begins with a backslash.
func (s *scan) escape() bool {
	if s.at+1 >= len(s.text) {
		return false
	}
	c := s.text[s.at+1]
	s.at += 2
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return true
	case 'u':
		if s.at+4 > len(s.text) {
			return false
		}
		_, err := hex.Decode(make([]byte, 2), s.text[s.at:s.at+4])
		s.at += 4
		return err == nil
	}
	return false
}
