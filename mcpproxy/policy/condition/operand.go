package condition

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/json/jsontext"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolcell/toolcell/internal/text"
	"golang.org/x/text/unicode/norm"
)

// An operand is what an argument is compared to.
type operand struct {
	kind   jsontext.Kind
	text   string // of a string, a glob, or a folder
	number decimal
	truth  bool
}

// Kinds of values; aBoolean is true and false.
const (
	aString  = jsontext.KindString
	aNumber  = jsontext.KindNumber
	aBoolean = jsontext.KindTrue
)

// kindWords are the kinds as messages have them.
var kindWords = map[jsontext.Kind]string{
	jsontext.KindBeginObject: "an object", jsontext.KindBeginArray: "a list", aString: "a string", aNumber: "a number",
	aBoolean: "true or false", jsontext.KindNull: "null",
}

func kindOf(raw []byte) jsontext.Kind {
	if kind := jsontext.Value(raw).Kind(); kind != jsontext.KindFalse {
		return kind
	}
	return aBoolean
}

// textOf decodes a string of JSON that is in ASCII.
func textOf(quoted []byte) (s string, ok bool) {
	if len(quoted) >= 2 && bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), true
	}
	return s, json.Unmarshal(quoted, &s) == nil
}

// compareName compares a name in its quotes, as canonical JSON has it, to one in a path. It
// is called for every name of the arguments, so it copies none that is plain. One that is
// too long to be compared may be similar.
func compareName(quoted []byte, name string) (same, similar bool) {
	if len(quoted) > MaxWritten {
		return false, true
	}
	inside := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inside, '\\') >= 0 || !isPlain(name) {
		s, ok := textOf(quoted)
		return ok && s == name, !ok || alike(s, name)
	}
	if inside = bytes.TrimSpace(inside); len(inside) != len(strings.TrimSpace(name)) {
		return false, false
	}
	return string(quoted[1:len(quoted)-1]) == name, strings.EqualFold(string(inside), strings.TrimSpace(name))
}

// alike reports whether some programs take two texts for the same.
func alike(a, b string) bool {
	if isPlain(a) && isPlain(b) {
		return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
	}
	return folded(a) == folded(b)
}

func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// folded is a text without what some programs pass over: case, blanks at the ends, what
// cannot be seen, and in which of several ways a character is written (Unicode Standard
// Annex 15, NFKC).
func folded(s string) string {
	s = strings.Map(func(r rune) rune {
		if text.IsInvisible(r) {
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(norm.NFKC.String(strings.ToLower(strings.ToUpper(norm.NFKC.String(s)))))
}

// globMatches reports whether some programs take a text for one that matches a glob.
func globMatches(pattern, s string) bool {
	forms := []string{s, strings.TrimSpace(s)}
	if !isPlain(s) {
		forms = append(forms, folded(s))
	}
	return slices.ContainsFunc(forms, func(form string) bool {
		return text.Glob(strings.ToLower(pattern), strings.ToLower(form))
	})
}

// maxEscapes is how often the escapes of a path are decoded, at most.
const maxEscapes = 4

// within reports whether a file is in a folder by its path alone, in each form that a
// server may read it in: with its escapes decoded, once or again, and with characters
// that stand for dots and slashes.
func within(folder, file string) bool {
	plain := norm.NFKC.String(folder)
	for range maxEscapes {
		if !inFolder(folder, file) || !inFolder(plain, norm.NFKC.String(file)) {
			return false
		}
		decoded := withoutEscapes(file)
		if decoded == file {
			return true
		}
		file = decoded
	}
	return false
}

// withoutEscapes decodes the escapes of a URL, and keeps every other %, as Python's unquote does.
func withoutEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(c))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func inFolder(folder, file string) bool {
	if !strings.HasPrefix(file, "/") || !utf8.ValidString(file) || strings.ContainsFunc(file, notInPath) || slices.ContainsFunc(strings.Split(file, "/"), isParent) {
		return false
	}
	file = path.Clean(file)
	return folder == "/" || file == folder || strings.HasPrefix(file, folder+"/")
}

// isParent reports whether a part of a path leads upward, also for programs that pass over
// blanks at the ends of what they are given.
func isParent(part string) bool { return strings.TrimSpace(part) == ".." }

// notInPath is for characters that end a path for some programs, or are a slash to them.
func notInPath(r rune) bool { return r == '\\' || r == '\n' || r == '\t' || text.IsInvisible(r) }

// maxExponent bounds the numbers that are compared, as powers of ten. Those beyond it
// are infinite or nothing for most programs (IEEE 754, binary64).
const maxExponent = 300

// A decimal is the number 0.DIGITS × 10^exponent, exactly as JSON has it. A big.Rat
// of 1e999999999 would fill all memory.
type decimal struct {
	negative bool
	digits   string // without zeros at its ends; empty for 0
	exponent int
	float    float64 // what most programs read in its place
}

// parseDecimal reads a number of JSON. ok is false if it is too large or too small to
// be compared.
func parseDecimal(s string) (d decimal, ok bool) {
	var err error
	if d.float, err = strconv.ParseFloat(s, 64); err != nil {
		return d, false
	}
	s, d.negative = strings.CutPrefix(s, "-")
	mantissa, power := s, ""
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		mantissa, power = s[:at], s[at+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return decimal{}, true // -0 also
	}
	if power != "" {
		if d.exponent, err = strconv.Atoi(power); err != nil || d.exponent < math.MinInt32 || d.exponent > math.MaxInt32 {
			return d, false
		}
	}
	d.exponent += len(whole) - (len(whole) + len(fraction) - len(digits))
	d.digits = strings.TrimRight(digits, "0")
	return d, max(d.exponent, -d.exponent) <= maxExponent
}

// compare returns how a number compares to another.
func (d decimal) compare(other decimal) int {
	switch {
	case d.sign() != other.sign():
		return cmp.Compare(d.sign(), other.sign())
	case d.negative:
		d, other = other, d
	}
	return cmp.Or(cmp.Compare(d.exponent, other.exponent), cmp.Compare(d.digits, other.digits))
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}
