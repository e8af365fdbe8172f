package mcpproxy

import (
	"context"
	"fmt"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/pins"
)

// sentTools returns the tools that are known of the server, nil if none are.
func (u *upstream) sentTools() []pins.Definition {
	if list, _ := u.record.Tools(); list != nil {
		return list.Sent()
	}
	return nil
}

// PinNotes returns what a run that used these servers should tell: tools that have
// changed since they were pinned, or are new, and hidden characters in definitions.
// It returns each once, whichever process asks. A server that was started for the run is
// listed beside its first calls, and is waited for a little.
func (p *Proxy) PinNotes(servers []string) (notes []string) {
	ctx, cancel := context.WithTimeout(p.ctx, changeTimeout)
	defer cancel()
	for _, name := range servers {
		u, err := p.upstream(name)
		if err != nil {
			continue // it was removed meanwhile
		}
		list, outdated := u.record.Tools()
		if list != nil && outdated && u.running() != nil {
			if newer, err := u.tools(ctx); err == nil {
				list = newer
			}
		}
		if list != nil {
			u.pins.Learn(list.Sent)
			if partial := u.record.Info().Partial; partial != "" && u.partialTold.Swap(&partial) == nil {
				notes = append(notes, fmt.Sprintf("server %q has tools that are not known: %s", name, partial))
			}
			notes = append(notes, u.pins.Notes(func(tool string) bool { _, shown := list.Find(tool); return shown })...)
		}
	}
	return notes
}

// Pins returns the pins of a server, nil if its tools are not known yet. It starts nothing.
func (p *Proxy) Pins(server string) (*pins.Server, error) {
	u, err := p.upstream(server)
	if err != nil {
		return nil, err
	}
	if list, _ := u.record.Tools(); list != nil {
		u.pins.Learn(list.Sent)
	}
	return u.pins.Store.Read(u.pins.Key)
}

// KnownTools returns the tools of a server, nil if they are not known, and an empty slice if it has
// none. It starts nothing.
func (p *Proxy) KnownTools(server string) []catalog.Tool {
	u, err := p.upstream(server)
	if err != nil {
		return nil
	}
	list, _ := u.record.Tools()
	if list == nil {
		return nil
	}
	return append([]catalog.Tool{}, list.All()...)
}

// AcceptPins pins a tool of a server as the server has it now, or all tools if tool is
// empty, and returns how they had differed.
func (p *Proxy) AcceptPins(server, tool string) (map[string]pins.Tool, error) {
	u, err := p.upstream(server)
	if err != nil {
		return nil, err
	}
	return u.pins.Store.Accept(u.pins.Key, tool)
}

// AcceptHint takes the word of a server that a tool only reads, if it defines the tool as
// it did when the user was asked: digest is Tool.Digest of then.
func (p *Proxy) AcceptHint(server, tool, digest string) error {
	u, err := p.upstream(server)
	if err != nil {
		return err
	}
	return u.pins.Store.AcceptHint(u.pins.Key, tool, digest)
}

// trusted returns a tool with what may be believed of it. It is the one place that decides
// whether a tool only reads.
func (u *upstream) trusted(t catalog.Tool) CheckedTool {
	return CheckedTool{t, u.pins.Standing(t.Definition(), u.sentTools)}
}

// prunePins forgets the pins of servers that are gone.
func prunePins(upstreams []*upstream) {
	keep := map[string]bool{}
	for _, u := range upstreams {
		keep[u.pins.Key] = true
	}
	upstreams[0].pins.Store.Prune(keep)
}
