package rawjson

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical returns the one form of a JSON text that all programs read alike: without
// white space, in ASCII, with numbers and the order of members as they were. It is what
// Python's json.dumps writes with separators=(",", ":").
//
// What programs read differently is an error: a name that an object has twice, bytes
// that are not UTF-8, half of a surrogate pair (RFC 8259, sections 4 and 8). A form in
// ASCII also passes unharmed through programs that take U+2028 for the end of a line.
func Canonical(text []byte) ([]byte, error) {
	c := canonicalizer{Scanner{Text: text}, make([]byte, 0, len(text))}
	if err := c.value(MaxDepth); err != nil {
		return nil, err
	}
	if c.SkipSpace(); c.Offset != len(text) {
		return nil, ErrNotJSON
	}
	return c.out, nil
}

// ErrNotJSON is the error of a text that is not JSON.
var ErrNotJSON = errors.New("this is not JSON")

// A canonicalizer writes what it reads.
type canonicalizer struct {
	Scanner
	out []byte
}

func (c *canonicalizer) value(depth int) error {
	c.SkipSpace()
	switch {
	case c.Offset == len(c.Text):
		return ErrNotJSON
	case depth < 0:
		return fmt.Errorf("it nests more than %d deep", MaxDepth)
	}
	switch c.Text[c.Offset] {
	case '{':
		return c.object(depth)
	case '[':
		return c.list(depth)
	case '"':
		return c.text()
	}
	from := c.Offset
	if !c.Scanner.value(0) {
		return ErrNotJSON
	}
	c.out = append(c.out, c.Text[from:c.Offset]...)
	return nil
}

func (c *canonicalizer) object(depth int) error {
	c.Offset++
	c.out = append(c.out, '{')
	var names nameSet
	for first := true; !c.take('}'); first = false {
		if !first {
			if !c.take(',') {
				return ErrNotJSON
			}
			c.out = append(c.out, ',')
		}
		c.SkipSpace()
		from := len(c.out)
		if err := c.text(); err != nil {
			return err
		}
		if name := c.out[from:]; !names.add(c.out, from, len(c.out)) {
			return fmt.Errorf("the name %s is there twice", clipped(name))
		}
		if !c.take(':') {
			return ErrNotJSON
		}
		c.out = append(c.out, ':')
		if err := c.value(depth - 1); err != nil {
			return err
		}
	}
	c.out = append(c.out, '}')
	return nil
}

func (c *canonicalizer) list(depth int) error {
	c.Offset++
	c.out = append(c.out, '[')
	for first := true; !c.take(']'); first = false {
		if !first {
			if !c.take(',') {
				return ErrNotJSON
			}
			c.out = append(c.out, ',')
		}
		if err := c.value(depth - 1); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	return nil
}

// text writes a string or name.
func (c *canonicalizer) text() error {
	from := c.Offset
	if !c.str() {
		return ErrNotJSON
	}
	c.out = append(c.out, '"')
	for s := c.Text[from+1 : c.Offset-1]; len(s) > 0; {
		n := 0
		for n < len(s) && s[n] >= ' ' && s[n] < utf8.RuneSelf-1 && s[n] != '\\' {
			n++
		}
		c.out, s = append(c.out, s[:n]...), s[n:]
		if len(s) == 0 {
			break
		}
		r, n, err := character(s)
		if err != nil {
			return err
		}
		c.out, s = appendEscaped(c.out, r), s[n:]
	}
	c.out = append(c.out, '"')
	return nil
}

// character decodes the first character of the inside of a string, which may be an
// escape, and returns how many bytes it has.
func character(s []byte) (r rune, n int, err error) {
	if s[0] != '\\' {
		if r, n = utf8.DecodeRune(s); r == utf8.RuneError && n == 1 {
			return 0, 0, errors.New("it has bytes that are not UTF-8")
		}
		return r, n, nil
	}
	if s[1] != 'u' {
		return rune(unescaped[s[1]]), 2, nil
	}
	r = hexadecimal(s[2:6])
	if !utf16.IsSurrogate(r) {
		return r, 6, nil
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if pair := utf16.DecodeRune(r, hexadecimal(s[8:12])); pair != utf8.RuneError {
			return pair, 12, nil
		}
	}
	return 0, 0, fmt.Errorf(`it has half of a surrogate pair, %s, which is no character; in Python, text.encode("utf-8", "replace").decode() takes it out`, s[:6])
}

// unescaped has what the letter behind a backslash stands for.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func hexadecimal(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits), 16, 16) // the scanner has seen that they are four
	return rune(n)
}

// appendEscaped writes a character of a string in ASCII.
func appendEscaped(out []byte, r rune) []byte {
	if i := bytes.IndexByte([]byte("\"\\\b\f\n\r\t"), byte(r)); i >= 0 && r < utf8.RuneSelf {
		return append(out, '\\', `"\bfnrt`[i])
	}
	if r >= ' ' && r < utf8.RuneSelf-1 {
		return append(out, byte(r))
	}
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return appendHex(appendHex(out, high), low)
	}
	return appendHex(out, r)
}

func appendHex(out []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(out, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// A nameSet has the names of an object, each in its one form.
type nameSet struct {
	few  [16]struct{ from, to int } // of the first, in the text that is written
	n    int
	many map[string]struct{} // when there are more
}

// add adds the name that stands at these places in text. It reports whether it is new.
func (s *nameSet) add(text []byte, from, to int) bool {
	name := text[from:to]
	if s.many == nil {
		for _, other := range s.few[:s.n] {
			if bytes.Equal(text[other.from:other.to], name) {
				return false
			}
		}
		if s.n < len(s.few) {
			s.few[s.n] = struct{ from, to int }{from, to}
			s.n++
			return true
		}
		s.many = make(map[string]struct{}, 4*len(s.few))
		for _, other := range s.few {
			s.many[string(text[other.from:other.to])] = struct{}{}
		}
	}
	if _, there := s.many[string(name)]; there {
		return false
	}
	s.many[string(name)] = struct{}{}
	return true
}

// clipped is a name for a message.
func clipped(quoted []byte) string {
	const most = 80
	if len(quoted) <= most {
		return string(quoted)
	}
	return string(quoted[:most]) + "…"
}
