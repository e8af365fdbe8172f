package condition

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

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
		if d.exponent, err = strconv.Atoi(power); err != nil || max(d.exponent, -d.exponent) > math.MaxInt32 {
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
