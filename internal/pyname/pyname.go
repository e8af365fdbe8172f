// Package pyname turns names of servers and tools into Python identifiers.
//
// It promises that Python reads an identifier of it as that very identifier, and that
// no name reaches another thing than the one it belongs to: see [Aliases].
package pyname

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Keywords are the words that cannot be a Python identifier. Soft
// keywords (match, case, type, _) can, so they are not here.
var Keywords = map[string]bool{
	"False": true, "None": true, "True": true, "and": true, "as": true, "assert": true, "async": true,
	"await": true, "break": true, "class": true, "continue": true, "def": true, "del": true, "elif": true,
	"else": true, "except": true, "finally": true, "for": true, "from": true, "global": true, "if": true,
	"import": true, "in": true, "is": true, "lambda": true, "nonlocal": true, "not": true, "or": true,
	"pass": true, "raise": true, "return": true, "try": true, "while": true, "with": true, "yield": true,
	"__debug__": true, // nothing may be assigned to it, no argument either
}

// A Scheme is how a kind of thing is named in code.
type Scheme struct {
	Fallback   string                   // for a name without a letter or digit
	Identifier func(name string) string // what its name becomes before clashes
	Reserved   []string                 // identifiers that mean something else
}

// Aliases returns a Python identifier for each of several names, which differ from each
// other. They do not depend on the order of the names. A name that is an identifier
// already is its own. No other name gets it: what code calls by a name is what has it.
// A clash gets the suffix _2, _3 and so on.
func (s Scheme) Aliases(names []string) []string {
	taken := make(map[string]bool, len(names)+len(s.Reserved))
	for _, name := range s.Reserved {
		taken[name] = true
	}
	aliases := make([]string, len(names))
	var others []int
	for i, name := range names {
		if base := s.Identifier(name); base == name && !taken[name] && isUsable(name) {
			aliases[i] = name
		} else {
			aliases[i] = base
			others = append(others, i)
		}
	}
	for _, name := range names {
		taken[name] = true
	}
	slices.SortFunc(others, func(a, b int) int { return strings.Compare(names[a], names[b]) })
	next := make(map[string]int, len(others)) // the suffix to try first: thousands may clash
	for _, i := range others {
		aliases[i] = unique(usable(aliases[i], s.Fallback), taken, next)
	}
	return aliases
}

// isUsable reports whether an identifier can be an alias as it is.
func isUsable(id string) bool { return strings.Trim(id, "_") != "" && !Keywords[id] }

// Unique returns base, or fallback if base has no letters, with a suffix if it
// is a keyword or in taken: _2, _3 and so on, in the order of the calls. It adds the result
// to taken.
func Unique(base, fallback string, taken map[string]bool) string {
	return unique(usable(base, fallback), taken, map[string]int{})
}

func usable(base, fallback string) string {
	if strings.Trim(base, "_") == "" {
		base = fallback
	}
	if Keywords[base] {
		base += "_"
	}
	return base
}

func unique(base string, taken map[string]bool, next map[string]int) string {
	alias, n := base, max(next[base], 2)
	if next[base] > 0 {
		alias = base + "_" + strconv.Itoa(n)
		n++
	}
	for ; taken[alias]; n++ {
		alias = base + "_" + strconv.Itoa(n)
	}
	taken[alias], next[base] = true, n
	return alias
}

// Servers is the scheme for servers. Scripts see a server as mcp_<alias>, and
// mcp_servers is already the dictionary of all of them.
func Servers() Scheme {
	return Scheme{Fallback: "server", Reserved: []string{"servers"}, Identifier: serverIdentifier}
}

func serverIdentifier(name string) string {
	if id := Identifier(name); id != "servers" {
		return id
	}
	return "servers_"
}

// Server is Unique for the identifiers of servers.
func Server(name string, taken map[string]bool) string {
	return Unique(serverIdentifier(name), Servers().Fallback, taken)
}

// Identifier returns name in lower case, with an underscore for every character
// that identifiers do not have, and before what they cannot begin with.
func Identifier(name string) string {
	return identifier(name, strings.ToLower)
}

// InItsCase is Identifier without a change of case.
func InItsCase(name string) string {
	return identifier(name, func(s string) string { return s })
}

// IsIdentifier reports whether Python takes name as an identifier and as no other: it
// reads ﬁle, with a ligature, as file.
func IsIdentifier(name string) bool { return name != "" && !Keywords[name] && InItsCase(name) == name }

func identifier(name string, toCase func(string) string) string {
	id := continued(toCase(continued(name)))
	if r, _ := utf8.DecodeRuneInString(id); id != "" && !isStart(r) {
		id = "_" + id
	}
	return id
}

// continued puts an underscore for what identifiers do not have, in normal form.
func continued(name string) string {
	only := func(s string) string {
		return strings.Map(func(r rune) rune {
			if isContinue(r) {
				return r
			}
			return '_'
		}, s)
	}
	return only(norm.NFKC.String(only(name))) // the form in which Python compares them (Language Reference, 2.3)
}

// isStart reports whether an identifier may begin with a character of a normal form.
func isStart(r rune) bool {
	if r < utf8.RuneSelf {
		return r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
	}
	return isOld(r) && unicode.In(r, unicode.L, unicode.Nl, unicode.Other_ID_Start)
}

// isContinue reports whether an identifier may have a character of a normal form.
func isContinue(r rune) bool {
	if r < utf8.RuneSelf {
		return isStart(r) || '0' <= r && r <= '9'
	}
	return isStart(r) || isOld(r) && unicode.In(r, unicode.Mn, unicode.Mc, unicode.Nd, unicode.Pc, unicode.Other_ID_Continue)
}

// isOld reports whether the Pythons in use know a character as ours does: nearly all new
// letters are outside the basic plane, where only Chinese ones (to extension F) are in use.
func isOld(r rune) bool {
	return r <= 0xffff || 0x20000 <= r && r <= 0x2ebe0 && unicode.Is(unicode.Han, r)
}
