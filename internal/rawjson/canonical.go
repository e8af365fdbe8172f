package rawjson

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
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
	if len(text) > manyNames && NestsAtMost(text, MaxDepth) && countNames(text) > manyNames {
		return nil, fmt.Errorf("it has more than %d names", manyNames)
	}
	v := jsontext.Value(bytes.Clone(text))
	// Never Canonicalize: it rounds 9007199254740993.
	err := v.Compact(jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false), jsontext.PreserveRawStrings(false))
	if err != nil {
		return nil, refusal(text, err)
	}
	return ascii(v), nil
}

// manyNames bounds the names of all objects: each takes some 100 bytes until its object
// has been read.
const manyNames = 500_000

// countNames counts the names in a text, if it is JSON.
func countNames(text []byte) (n int) {
	for s := (Scanner{Text: text}); s.Offset < len(text); {
		switch c := text[s.Offset]; c {
		case '"':
			if !s.str() {
				return n
			}
			continue
		case ':':
			n++
		}
		s.Offset++
	}
	return n
}

// ErrNotJSON is the error of a text that is not JSON.
var ErrNotJSON = errors.New("this is not JSON")

// refusal says in words why a text has no such form.
func refusal(text []byte, err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case !errors.As(err, &syntax) || errors.Is(err, io.ErrUnexpectedEOF):
		return ErrNotJSON
	case errors.Is(err, jsontext.ErrDuplicateName):
		name, _ := jsontext.AppendQuote(nil, syntax.JSONPointer.LastToken()) // it was valid UTF-8
		return fmt.Errorf("the name %s is there twice", clipped(ascii(name)))
	case strings.Contains(err.Error(), "exceeded max depth"): // the library has no value for it
		return fmt.Errorf("it nests more than %d deep", MaxDepth)
	}
	at := text[min(int(syntax.ByteOffset), len(text)):]
	if isHalf(at) {
		return fmt.Errorf(`it has half of a surrogate pair, %s, which is no character; in Python, text.encode("utf-8", "replace").decode() takes it out`, at[:6])
	}
	if r, n := utf8.DecodeRune(at); r == utf8.RuneError && n == 1 {
		return errors.New("it has bytes that are not UTF-8")
	}
	return ErrNotJSON
}

// isHalf reports whether a text begins with the escape of half of a surrogate pair.
func isHalf(text []byte) bool {
	if len(text) < 6 || string(text[:2]) != `\u` {
		return false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return err == nil && utf16.IsSurrogate(rune(n))
}

// ascii escapes all characters beyond ASCII, and DEL. In JSON they are in strings only.
func ascii(text []byte) []byte {
	beyond := 0
	for _, c := range text {
		if c >= utf8.RuneSelf-1 {
			beyond++
		}
	}
	if beyond == 0 {
		return text
	}
	const hex = "0123456789abcdef"
	var units [2]uint16
	out := make([]byte, 0, len(text)+5*beyond)
	for len(text) > 0 {
		n := 0
		for n < len(text) && text[n] < utf8.RuneSelf-1 {
			n++
		}
		out, text = append(out, text[:n]...), text[n:]
		if len(text) > 0 {
			r, n := utf8.DecodeRune(text)
			for _, unit := range utf16.AppendRune(units[:0], r) {
				out = append(out, '\\', 'u', hex[unit>>12], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
			}
			text = text[n:]
		}
	}
	return out
}

// clipped is a name for a message.
func clipped(quoted []byte) string {
	const maxLength = 80
	if len(quoted) <= maxLength {
		return string(quoted)
	}
	return string(quoted[:maxLength]) + "…"
}
