package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolcell/toolcell/images"
	"github.com/toolcell/toolcell/internal/text"
)

// A kind is what a value is, in a file that tells a number from a text.
type kind int

const (
	aText kind = iota
	aNumber
	aSwitch
	aList
)

// form says how the values of a kind are written in a file.
func (k kind) form() string {
	return [...]string{"a string", "a number or a string", "true or false", "a list of strings"}[k]
}

// A reader reads the value of one setting into Settings.
type reader struct {
	kind   kind
	read   func(value string) error
	amount func() float64 // how much was read, of a number
}

// words is a reader of texts, lists one of lists.
func words(read func(string) error) reader { return reader{kind: aText, read: read} }
func lists(read func(string) error) reader { return reader{kind: aList, read: read} }

// into returns what reads a value into a field. The error of parse says what the value is.
func into[T any](to *T, parse func(string) (T, error)) reader {
	r := reader{kind: aText, read: func(value string) (err error) {
		if *to, err = parse(value); err != nil {
			return fmt.Errorf("%q is %w", text.Bound(value, maxQuoted), err)
		}
		return nil
	}}
	number := func(amount func() float64) { r.kind, r.amount = aNumber, amount }
	switch to := any(to).(type) {
	case *bool:
		r.kind = aSwitch
	case *[]string:
		r.kind = aList
	case *int:
		number(func() float64 { return float64(*to) })
	case *int64:
		number(func() float64 { return float64(*to) })
	case *float64:
		number(func() float64 { return *to })
	case *time.Duration:
		number(func() float64 { return float64(*to) })
	}
	return r
}

// maxQuoted bounds a value in an error, in bytes.
const maxQuoted = 200

// number is into for numbers.
func number[T int | int64](to *T, parse func(string) (int64, error)) reader {
	return into(to, func(value string) (T, error) {
		n, err := parse(value)
		return T(n), err
	})
}

// plain is into for any text.
func plain(to *string) reader {
	return into(to, func(value string) (string, error) { return value, nil })
}

// oneOf is into for one of some words, in any case.
func oneOf[T ~string](to *T, words ...string) reader {
	return into(to, func(value string) (T, error) {
		word := strings.ToLower(strings.TrimSpace(value))
		if !slices.Contains(words, word) {
			return "", fmt.Errorf("none of %s", strings.Join(words, ", "))
		}
		return T(word), nil
	})
}

// parseDuration takes seconds as a bare number, or a Go duration.
func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if n, nerr := strconv.ParseFloat(s, 64); nerr == nil && n > 0 && n < 1e9 {
		d, err = time.Duration(n*float64(time.Second)), nil
	}
	if err != nil {
		return 0, errors.New("not a time; write 30, 30s or 2m")
	}
	if d <= 0 {
		return 0, errors.New("too short: a time must be greater than 0")
	}
	return d, nil
}

// whole returns what parses a whole number.
func whole(least, most int64) func(string) (int64, error) {
	return func(s string) (int64, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		switch wrong := err != nil || n < least || n > most; {
		case wrong && most == math.MaxInt32:
			return 0, fmt.Errorf("not a whole number of at least %d", least)
		case wrong:
			return 0, fmt.Errorf("not a whole number from %d to %d", least, most)
		}
		return n, nil
	}
}

// sizeWithin returns what parses a size that is within bounds; otherwise says that it is not.
func sizeWithin(least, most int64, otherwise string) func(string) (int64, error) {
	return func(s string) (int64, error) {
		n, err := text.ParseSize(s)
		if err == nil && (n < least || n > most) {
			err = errors.New(otherwise)
		}
		return n, err
	}
}

// parseMemory parses the memory limit of a sandbox, which does not start with less.
var parseMemory = sizeWithin(16<<20, math.MaxInt64, "too small: Python needs at least 16m")

// maxSessions keeps the total memory of sessions within reason.
const maxSessions = 64

func parseCPUs(s string) (float64, error) {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0.01 && n <= 10000) { // ParseFloat takes NaN
		return 0, errors.New("not a number of processors such as 1.5")
	}
	return n, nil
}

func (s *Settings) readUser(value string) error {
	u, g, ok := strings.Cut(value, ":")
	if !ok {
		g = u
	}
	uid, err1 := strconv.ParseUint(u, 10, 31)
	gid, err2 := strconv.ParseUint(g, 10, 31)
	if err1 != nil || err2 != nil || uid == 0 || gid == 0 {
		return fmt.Errorf("%q is not UID:GID, two numbers above 0", text.Bound(value, maxQuoted))
	}
	s.UID, s.GID = uint32(uid), uint32(gid)
	return nil
}

func listed(value string) []string {
	return strings.FieldsFunc(value, func(c rune) bool { return c == ',' || c == ' ' })
}

// parseModules parses names of Python modules.
func parseModules(value string) ([]string, error) {
	names := listed(value)
	for _, n := range names {
		if !moduleName.MatchString(n) {
			return nil, fmt.Errorf("no list of Python modules such as numpy,pandas: %q", text.Bound(n, maxQuoted))
		}
	}
	return names, nil
}

var moduleName = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)

func (s *Settings) readMirrors(value string) error {
	mirrors, plain, err := images.ParseMirrors(value)
	s.Puller.Mirrors, s.Puller.PlainHTTP = mirrors, append(s.Puller.PlainHTTP, plain...)
	return err
}

func (s *Settings) readInsecure(value string) error {
	s.Puller.PlainHTTP = append(s.Puller.PlainHTTP, listed(value)...)
	return nil
}

func parseLevel(value string) (level slog.Level, err error) {
	name := strings.ToUpper(value)
	switch name { // names that only Python's logging has
	case "WARNING":
		name = "WARN"
	case "CRITICAL":
		name = "ERROR"
	}
	if level.UnmarshalText([]byte(name)) != nil {
		err = errors.New("none of DEBUG, INFO, WARN, ERROR")
	}
	return level, err
}

func parseBool(value string) (bool, error) {
	switch strings.ToLower(value) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, errors.New("neither 1 nor 0")
}

// parseDays reads a time as whole days, one at least.
func parseDays(s string) (int, error) {
	d, err := parseDuration(s)
	const day = 24 * time.Hour
	return int((d + day - 1) / day), err
}

// readRedact reads patterns, one a line.
func (s *Settings) readRedact(value string) error {
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if isList(line) { // it would be a set of characters
			return fmt.Errorf("%s is a list as config.toml has it; write one pattern a line, without brackets and quotes", text.Bound(line, maxQuoted))
		}
		pattern, err := regexp.Compile(line)
		if err != nil {
			return err
		}
		if tree, err := syntax.Parse(line, syntax.Perl); err != nil || matchesNothing(tree) {
			return fmt.Errorf("%q matches an empty text, which is everywhere; it would black out everything", text.Bound(line, maxQuoted))
		}
		s.Record.Redact = append(s.Record.Redact, pattern)
	}
	return nil
}

// isList reports whether a value is a list of strings in TOML or JSON.
func isList(value string) bool {
	inner, ok := strings.CutPrefix(value, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	inner = strings.TrimSpace(inner)
	return ok && closed && len(inner) > 1 && (inner[0] == '"' || inner[0] == '\'') && inner[0] == inner[len(inner)-1]
}

// matchesNothing reports whether an expression may match an empty text.
func matchesNothing(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL, syntax.OpNoMatch:
		return false
	case syntax.OpCapture, syntax.OpPlus:
		return matchesNothing(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min == 0 || matchesNothing(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !matchesNothing(sub) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, matchesNothing)
	}
	return true // x*, x?, and places in a text such as ^ or \b
}
