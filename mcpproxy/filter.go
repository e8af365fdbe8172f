package mcpproxy

import (
	"fmt"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// A toolFilter is what a client's file says of the tools of one server: a list
// of those to show, of those to hide, or both. Entries are names, in which * and ?
// are wildcards.
type toolFilter struct {
	allow, deny []string
	source      string
}

func filterOf(s config.Server) toolFilter { return toolFilter{s.AllowTools, s.DenyTools, s.Source} }

// refuses returns why a tool is hidden, or nothing.
func (f toolFilter) refuses(name string) string {
	for _, pattern := range f.deny {
		if matches([]rune(pattern), []rune(name)) {
			return fmt.Sprintf("%s excludes %q", f.source, pattern)
		}
	}
	if f.allow == nil {
		return ""
	}
	for _, pattern := range f.allow {
		if matches([]rune(pattern), []rune(name)) {
			return ""
		}
	}
	if len(f.allow) == 0 {
		return f.source + " allows no tool of this server"
	}
	return fmt.Sprintf("%s allows only %s", f.source, text.QuoteList(f.allow, 10))
}

// matches reports whether name is what pattern says: * is any characters, ? is
// one, and all others are themselves.
func matches(pattern, name []rune) bool {
	i, j := 0, 0          // in pattern and name
	star, resume := -1, 0 // the last *, and the name that comes after what it took
	for j < len(name) {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, resume = i, j
			i++
		case i < len(pattern) && (pattern[i] == '?' || pattern[i] == name[j]):
			i, j = i+1, j+1
		case star >= 0: // let it take one more
			resume++
			i, j = star+1, resume
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == '*' {
		i++
	}
	return i == len(pattern)
}
