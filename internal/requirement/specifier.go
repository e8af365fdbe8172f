package requirement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/text"
)

// A Specifier says which versions will do: all of its clauses must be met. The zero
// Specifier is met by every version.
type Specifier struct{ clauses []clause }

type clause struct {
	op     string
	v      Version // of === too, for which only its text counts
	prefix bool    // ==1.2.*
}

// The longer ones first.
var operators = []string{"===", "~=", "==", "!=", "<=", ">=", "<", ">"}

// ParseSpecifier reads clauses with commas between; none are any version.
func ParseSpecifier(s string) (Specifier, error) {
	var all Specifier
	if strings.TrimSpace(s) == "" {
		return all, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		if strings.TrimSpace(part) == "" {
			continue // PEP 508 allows a comma at the end
		}
		c, err := parseClause(strings.TrimSpace(part))
		if err != nil {
			return Specifier{}, err
		}
		all.clauses = append(all.clauses, c)
	}
	return all, nil
}

// UnmarshalText is ParseSpecifier.
func (s *Specifier) UnmarshalText(versions []byte) (err error) {
	*s, err = ParseSpecifier(string(versions))
	return err
}

func parseClause(s string) (c clause, err error) {
	i := slices.IndexFunc(operators, func(op string) bool { return strings.HasPrefix(s, op) })
	if i < 0 {
		return c, fmt.Errorf(`%q is not understood; versions are written as in ">=2,<3"`, text.Bound(s, 80))
	}
	c.op = operators[i]
	rest := strings.TrimSpace(s[len(c.op):])
	if c.op == "==" || c.op == "!=" {
		rest, c.prefix = strings.CutSuffix(rest, ".*")
	}
	if c.v, err = ParseVersion(rest); err != nil {
		return c, err
	}
	switch {
	case c.op == "~=" && len(c.v.release) < 2:
		return c, errors.New("~= needs a version with at least two numbers, as in ~=2.1")
	case c.v.local != nil && (c.prefix || c.op != "==" && c.op != "!=" && c.op != "==="):
		return c, fmt.Errorf("%q has a local version, which only == and != take", text.Bound(s, 80))
	}
	return c, nil
}

// Allows reports whether a version meets all clauses. Pre-releases count like others:
// the resolver has chosen already.
func (s Specifier) Allows(v Version) bool {
	return !slices.ContainsFunc(s.clauses, func(c clause) bool { return !c.allows(v) })
}

func (c clause) allows(v Version) bool {
	switch c.op {
	case "===":
		return strings.EqualFold(v.text, c.v.text)
	case "==":
		return c.matches(v)
	case "!=":
		return !c.matches(v)
	case "<=":
		return v.compare(c.v) <= 0
	case ">=":
		return v.compare(c.v) >= 0
	case "<":
		// <3.1 excludes 3.1.dev0, unless it names a pre-release itself.
		return v.compare(c.v) < 0 && (c.v.isPre() || !v.isPre() || !sameRelease(v, c.v))
	case ">":
		// >3.1 excludes 3.1.post0 and 3.1+local.
		return v.compare(c.v) > 0 && (c.v.post != "" || v.post == "" || !sameRelease(v, c.v))
	}
	// ~=2.2.1 is >=2.2.1, ==2.2.*
	upper := c.v
	upper.release, upper.pre = upper.release[:len(upper.release)-1], ""
	return v.compare(c.v) >= 0 && v.beginsWith(upper)
}

// matches is ==.
func (c clause) matches(v Version) bool {
	if c.prefix {
		return v.beginsWith(c.v)
	}
	return v.compare(c.v) == 0 && (c.v.local == nil || slices.Equal(v.local, c.v.local))
}

// String returns the clauses in their one form, in the order of their texts.
func (s Specifier) String() string {
	texts := make([]string, len(s.clauses))
	for i, c := range s.clauses {
		texts[i] = c.op + c.v.text
		if c.prefix {
			texts[i] += ".*"
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}
