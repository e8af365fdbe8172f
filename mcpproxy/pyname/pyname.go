// Package pyname turns names of servers and tools into Python identifiers.
package pyname

import (
	"strconv"
	"strings"
)

// Keywords are the words that cannot be a Python identifier. Soft
// keywords (match, case, type, _) can, so they are not here.
var Keywords = map[string]bool{
	"False": true, "None": true, "True": true, "and": true, "as": true, "assert": true, "async": true,
	"await": true, "break": true, "class": true, "continue": true, "def": true, "del": true, "elif": true,
	"else": true, "except": true, "finally": true, "for": true, "from": true, "global": true, "if": true,
	"import": true, "in": true, "is": true, "lambda": true, "nonlocal": true, "not": true, "or": true,
	"pass": true, "raise": true, "return": true, "try": true, "while": true, "with": true, "yield": true,
}

// Alias returns a Python identifier for name that is not yet in taken, and
// adds it to taken. It is lower case, with an underscore for every character
// that ASCII identifiers do not have. A name without a letter or digit becomes
// fallback. A clash gets the suffix _2, _3 and so on, in the order of the calls.
func Alias(name, fallback string, taken map[string]bool) string {
	return Unique(Identifier(name), fallback, taken)
}

// Unique returns base, or fallback if base has no letters, with a suffix if it
// is a keyword or in taken. It adds the result to taken.
func Unique(base, fallback string, taken map[string]bool) string {
	if strings.Trim(base, "_") == "" {
		base = fallback
	}
	if Keywords[base] {
		base += "_"
	}
	alias := base
	for n := 2; taken[alias]; n++ {
		alias = base + "_" + strconv.Itoa(n)
	}
	taken[alias] = true
	return alias
}

// Server is Alias for servers. Scripts see a server as mcp_<alias>, and
// mcp_servers is already the dictionary of all of them.
func Server(name string, taken map[string]bool) string {
	if Identifier(name) == "servers" {
		name = "servers_"
	}
	return Alias(name, "server", taken)
}

// Identifier returns name in lower case, with an underscore for every character
// that ASCII identifiers do not have, and before a leading digit.
func Identifier(name string) string {
	id := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, name)
	if id != "" && id[0] >= '0' && id[0] <= '9' {
		id = "_" + id
	}
	return id
}
