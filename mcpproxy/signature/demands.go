package signature

import (
	"strconv"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

const (
	maxDemands = 160 // bytes of all that is said of one value
	maxBound   = 40  // of a number in it
	maxPattern = 60
	largestInt = 1<<53 - 1 // JavaScript's; generators write it where there is no limit
)

// demands describes in a few words what a schema demands of a value beyond its type. Invalid
// demands, such as a negative length, are left out: the server decides.
func demands(n *node) string {
	var all []string
	if format := n.str("format"); format != "" {
		all = append(all, "format "+format)
	}
	low, high := bounds(n)
	all = append(all, between(low, high, "")...)
	if step := n.number("multipleOf"); step != "" && len(step) <= maxBound && step != "1" {
		all = append(all, "a multiple of "+step)
	}
	for _, of := range []struct{ least, most, one string }{
		{"minLength", "maxLength", "character"},
		{"minItems", "maxItems", "item"},
	} {
		all = append(all, between(length(n.number(of.least)), length(n.number(of.most)), of.one)...)
	}
	if pattern := n.str("pattern"); pattern != "" && len(pattern) <= maxPattern {
		all = append(all, "matches "+pattern)
	}
	return text.Printable(strings.Join(all, ", "), maxDemands)
}

// A bound is an end of a range of numbers.
type bound struct {
	text     string // "" is none
	value    float64
	excluded bool // the number itself is not allowed
}

// bounds reads the ends of a schema's range of numbers. exclusiveMinimum is a number of
// its own since draft 6, and before that a boolean about minimum. Where a schema has both
// numbers, the narrower one counts.
func bounds(n *node) (low, high bound) {
	low, high = end(n, "minimum", "exclusiveMinimum", 1), end(n, "maximum", "exclusiveMaximum", -1)
	if low.value <= -largestInt {
		low = bound{}
	}
	if high.value >= largestInt {
		high = bound{}
	}
	return low, high
}

// end reads one end; sign is 1 for the lower and -1 for the upper one.
func end(n *node, including, excluding string, sign float64) bound {
	with, without := numberBound(n.number(including)), numberBound(n.number(excluding))
	if without.text != "" && (with.text == "" || sign*without.value >= sign*with.value) {
		without.excluded = true
		return without
	}
	flag := n.get(excluding)
	with.excluded = with.text != "" && flag != nil && flag.kind == 't'
	return with
}

func numberBound(txt string) bound {
	if txt == "" || len(txt) > maxBound {
		return bound{}
	}
	value, _ := strconv.ParseFloat(txt, 64) // what is too large for a float is infinite
	return bound{text: txt, value: value}
}

// between says which numbers a range has: how many there are to be of one thing, if that is
// given.
func between(low, high bound, one string) (words []string) {
	of := func(b bound) string {
		switch {
		case one == "":
			return b.text
		case b.text == "1":
			return b.text + " " + one
		}
		return b.text + " " + one + "s"
	}
	switch {
	case low.text != "" && high.text != "" && low.value < high.value && !low.excluded && !high.excluded:
		return []string{low.text + " to " + of(high)}
	case low.text != "" && low.text == high.text && !low.excluded && !high.excluded:
		return []string{"exactly " + of(low)}
	case low.text != "" && low.excluded:
		words = append(words, "above "+of(low))
	case low.text != "" && (high.text != "" || low.value != 0):
		words = append(words, "at least "+of(low))
	}
	switch {
	case high.text == "":
	case high.excluded:
		words = append(words, "below "+of(high))
	default:
		words = append(words, "at most "+of(high))
	}
	return words
}

// length reads a number of characters or items: anything else is none.
func length(txt string) bound {
	value, err := strconv.ParseFloat(txt, 64)
	if err != nil || value < 0 || value >= largestInt || value != float64(int64(value)) {
		return bound{}
	}
	return bound{text: strconv.FormatInt(int64(value), 10), value: value}
}
