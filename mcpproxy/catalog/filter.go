package catalog

import (
	"fmt"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/match"
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
		if match.Glob([]rune(pattern), []rune(name)) {
			return fmt.Sprintf("%s excludes %q", f.source, pattern)
		}
	}
	if f.allow == nil {
		return ""
	}
	for _, pattern := range f.allow {
		if match.Glob([]rune(pattern), []rune(name)) {
			return ""
		}
	}
	if len(f.allow) == 0 {
		return f.source + " allows no tool of this server"
	}
	return fmt.Sprintf("%s allows only %s", f.source, text.QuoteList(f.allow, 10))
}
