package mcpproxy

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/pins"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// pinnedTools compares the tools of one server with what is pinned of them. It does so
// when it learns of them: a call looks one digest up.
type pinnedTools struct {
	store pins.Store
	name  string // of the server
	key   func() string
	log   *slog.Logger

	mu       sync.Mutex
	compared bool
	stamp    string // of the file, as it was then
	pins     *pins.Server
	digests  map[string]string // that are pinned, by tool
	unkept   bool              // the pins are only here
	err      error             // why the pins cannot be read
	told     bool              // a run has told of err
}

func newPinnedTools(s config.Server, store pins.Store, log *slog.Logger) *pinnedTools {
	return &pinnedTools{store: store, name: s.Name, key: sync.OnceValue(func() string { return pins.Key(s) }), log: log}
}

// record compares tools that the server just gave, before they are put to use.
func (p *pinnedTools) record(sent []pins.Definition) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.compare(sent)
}

// learn compares tools that are known from an earlier process, once.
func (p *pinnedTools) learn(list *catalog.List) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.compared {
		p.compare(list.Sent())
	}
}

// compare takes in what the server has now. p.mu is held.
func (p *pinnedTools) compare(sent []pins.Definition) {
	server, err := p.recordTools(sent)
	if err != nil {
		p.log.Warn("comparing the tools of a server with its pins", "server", p.name, "err", err)
	}
	p.compared, p.stamp, p.pins, p.err = true, p.store.Stamp(p.key()), server, nil
	p.unkept = p.stamp == ""
	if server == nil {
		p.err, p.digests = err, nil
		return
	}
	p.digests = make(map[string]string, len(server.Tools))
	for name, t := range server.Tools {
		if t.Pinned != nil {
			p.digests[name] = t.Pinned.Digest
		}
		for _, v := range []*pins.Version{t.Pinned, t.Seen} {
			if v != nil && !p.unkept {
				v.Shown = nil // is on disk
			}
		}
	}
}

// recordTools compares tools with the pins on disk. If they could not be kept there, such
// as on a full disk, it takes those of this process: else each change would be pinned
// anew. p.mu is held.
func (p *pinnedTools) recordTools(sent []pins.Definition) (*pins.Server, error) {
	if p.unkept && p.pins != nil {
		return p.store.Resume(p.key(), p.pins, sent)
	}
	return p.store.Record(p.key(), p.name, sent)
}

// changed says how a tool differs from its pin; it returns nothing if it does not. known
// has the tools of the server.
func (p *pinnedTools) changed(t catalog.Tool, known *catalog.Record) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.compared && p.digests[t.Name] == t.Digest {
		return ""
	}
	if !p.compared || p.store.Stamp(p.key()) != p.stamp { // another process may have accepted it
		if list, _ := known.Tools(); list != nil {
			p.compare(list.Sent())
		}
		if p.digests[t.Name] == t.Digest {
			return ""
		}
	}
	if p.err != nil {
		return "its definition cannot be compared with what is pinned: " + p.err.Error()
	}
	how := "its definition differs from the one that is pinned"
	if pin := p.pins.Tools[t.Name]; pin != nil && pin.Change() != pins.Unchanged {
		how = happened(pin)
	}
	return fmt.Sprintf("%s (now sha256:%.12s); toolcell servers pins %s shows how, toolcell servers pins accept %s %s takes it over",
		how, t.Digest, text.ShellWord(p.name), text.ShellWord(p.name), text.ShellWord(t.Name))
}

// happened says what became of a tool that differs from its pin.
func happened(t *pins.Tool) string {
	if t.Pinned == nil {
		return "it is a new tool, added on " + day(t.Seen.Since)
	}
	return "its definition has changed since " + day(t.Pinned.Since)
}

func day(t time.Time) string { return t.Local().Format(time.DateOnly) }

// notes returns what runs have not told yet of the tools in list, in words.
func (p *pinnedTools) notes(list *catalog.List) (notes []string) {
	p.learn(list)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		if p.told {
			return nil
		}
		p.told = true
		return []string{fmt.Sprintf("the tools of server %q cannot be compared with what is pinned of them: %s", p.name, p.err)}
	}
	if len(p.pins.Unnoted()) == 0 {
		return nil
	}
	server, names, err := p.store.Note(p.key())
	if err != nil || server == nil {
		names, server = p.pins.Unnoted(), p.pins // which this process tells then
	}
	byKind := map[string][]string{}
	for _, name := range names {
		t := server.Tools[name]
		if mine := p.pins.Tools[name]; mine != nil {
			mine.Now().Noted = true
		}
		if _, shown := list.Find(name); !shown {
			continue
		}
		switch {
		case t.Seen != nil && t.Pinned == nil:
			byKind["new"] = append(byKind["new"], name)
		case t.Seen != nil:
			byKind["changed"] = append(byKind["changed"], name)
		}
		if len(t.Now().Hidden) > 0 {
			byKind["hidden"] = append(byKind["hidden"], name)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		notes = append(notes, p.note(kind, byKind[kind], server))
	}
	// Another process may have told of some, which this one need not.
	for _, name := range p.pins.Unnoted() {
		p.pins.Tools[name].Now().Noted = true
	}
	return notes
}

// maxNotedTools is how many tools a note names.
const maxNotedTools = 5

func (p *pinnedTools) note(kind string, names []string, server *pins.Server) string {
	t := server.Tools[names[0]]
	which := fmt.Sprintf("tool %q of server %q", names[0], p.name)
	several := fmt.Sprintf("%d tools of server %q (%s)", len(names), p.name, text.QuoteList(names, maxNotedTools))
	show := "toolcell servers pins " + text.ShellWord(p.name)
	switch {
	case kind == "new" && len(names) == 1:
		return fmt.Sprintf("%s is new, added on %s: %s shows it", which, day(t.Seen.Since), show)
	case kind == "new":
		return fmt.Sprintf("%s are new: %s shows them", several, show)
	case kind == "changed" && len(names) == 1:
		return fmt.Sprintf("%s has changed its definition since %s: %s shows how", which, day(t.Pinned.Since), show)
	case kind == "changed":
		return fmt.Sprintf("%s have changed their definitions: %s shows how", several, show)
	case len(names) == 1:
		return fmt.Sprintf("%s has hidden characters in its definition (%s), which may hide instructions: %s shows them", which, text.OneLine(t.Now().Hidden[0], 120), show)
	default:
		return fmt.Sprintf("%s have hidden characters in their definitions, which may hide instructions: %s shows them", several, show)
	}
}

// PinNotes returns what a run that used these servers should tell: tools that have
// changed since they were pinned, or are new, and hidden characters in definitions.
// It returns each once, whichever process asks. A server that was started for the run is
// listed beside its first calls, and is waited for a little.
func (p *Proxy) PinNotes(servers []string) (notes []string) {
	ctx, cancel := context.WithTimeout(p.ctx, changePatience)
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
			notes = append(notes, u.pins.notes(list)...)
		}
	}
	return notes
}

// Pins returns what is pinned of the tools of a server, nil if they are not known yet.
// It starts nothing.
func (p *Proxy) Pins(server string) (*pins.Server, error) {
	u, err := p.upstream(server)
	if err != nil {
		return nil, err
	}
	if list, _ := u.record.Tools(); list != nil {
		u.pins.learn(list)
	}
	return u.pins.store.Read(u.pins.key())
}

// AcceptPins pins a tool of a server as the server has it now, or all tools if tool is
// empty, and returns how they had differed.
func (p *Proxy) AcceptPins(server, tool string) (map[string]pins.Tool, error) {
	u, err := p.upstream(server)
	if err != nil {
		return nil, err
	}
	return u.pins.store.Accept(u.pins.key(), tool)
}

// prunePins forgets the pins of servers that are gone.
func prunePins(upstreams []*upstream) {
	keep := map[string]bool{}
	for _, u := range upstreams {
		keep[u.pins.key()] = true
	}
	upstreams[0].pins.store.Prune(keep)
}
