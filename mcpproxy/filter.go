package mcpproxy

import "fmt"

// A toolFilter is what a client's file says of the tools of one server: a list
// of those to show, of those to hide, or both. Entries are names, in which * and ?
// are wildcards.
type toolFilter struct {
	allow, deny []string
	source      string
}

func (s Server) toolFilter() toolFilter { return toolFilter{s.AllowTools, s.DenyTools, s.Source} }

// refuses returns why a tool is hidden, or nothing.
func (f toolFilter) refuses(name string) string {
	for _, pattern := range f.deny {
		if matches(pattern, name) {
			return fmt.Sprintf("%s excludes %q", f.source, pattern)
		}
	}
	if f.allow == nil {
		return ""
	}
	for _, pattern := range f.allow {
		if matches(pattern, name) {
			return ""
		}
	}
	if len(f.allow) == 0 {
		return f.source + " allows no tool of this server"
	}
	return fmt.Sprintf("%s allows only %s", f.source, quoted(f.allow, 10))
}

// matches reports whether name is what pattern says: * is any characters, ? is
// one, and all others are themselves.
func matches(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, from := -1, 0
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, from = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0: // let the last star take one more
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
