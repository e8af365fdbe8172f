package mcpproxy

import (
	"fmt"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// noServer explains why a server cannot be used, or names those that can.
func noServer(name string, servers []config.Server, problems []config.Problem) error {
	for _, p := range problems {
		if p.Server == name {
			return fmt.Errorf("server %q cannot be used: %s (%s)", name, p.Reason, p.Source)
		}
	}
	if len(servers) == 0 {
		return fmt.Errorf("there is no server %q: no servers are configured", text.Printable(name, config.MaxNameLength))
	}
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	near := text.Nearest(name, names, 1)
	return fmt.Errorf("there is no server %q; the nearest is %s, known are %s (runtime.discovered_servers() lists them)",
		text.Printable(name, config.MaxNameLength), text.QuoteList(near, 1), text.QuoteList(names, 20))
}
