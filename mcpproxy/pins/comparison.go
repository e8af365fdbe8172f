package pins

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A Comparison compares the tools of one server with their pins. It does so when it learns
// of the tools: a call only looks up one digest.
type Comparison struct {
	Store Store
	Key   string // of the server in the store
	name  string // of the server
	log   *slog.Logger

	mu       sync.Mutex
	compared bool
	stamp    state.Stamp // of the file, as it was then
	pins     *Server
	unkept   bool  // the pins are only here
	keepErr  error // why they are
	err      error // why the pins cannot be read
	told     bool  // a run has told of err
}

// NewComparison compares the tools of a server with those in a store.
func NewComparison(s config.Server, store Store, log *slog.Logger) *Comparison {
	return &Comparison{Store: store, Key: Key(s), name: s.Name, log: log}
}

// Record compares the tools that the server has just listed, before they are used.
func (c *Comparison) Record(sent []Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.compare(sent)
}

// Learn compares tools that are known from an earlier process, once.
func (c *Comparison) Learn(known func() []Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.compared {
		c.compare(known())
	}
}

// compare compares the current tools of the server. c.mu is held.
func (c *Comparison) compare(sent []Definition) {
	c.compared = false // which it stays if this panics
	contain.Point("pins: locked")
	var kept *Server // if the pins could not be kept, such as on a full disk: else each change would be pinned anew
	if c.unkept {
		kept = c.pins
	}
	server, err := c.Store.Record(c.Key, c.name, kept, sent)
	if err != nil {
		c.log.Warn("comparing the tools of a server with its pins", "server", c.name, "err", err)
	}
	c.stamp, c.pins, c.err, c.keepErr = c.Store.Stamp(c.Key), server, nil, err
	c.unkept = c.stamp == state.Stamp{}
	if server == nil {
		c.err = err
	} else if !c.unkept {
		for _, t := range server.Tools {
			for _, v := range []*Version{t.Pinned, t.Seen} {
				if v != nil {
					v.Shown = nil // is on disk
				}
			}
		}
	}
	c.compared = true
}

// pinned returns what a tool is compared with, the zero value if nothing is. c.mu is held.
func (c *Comparison) pinned(tool string) Version {
	if c.pins == nil {
		return Version{}
	}
	return c.pins.Tools[tool].pinned()
}

// A Standing is how a tool compares with its pin. The zero value is that of a tool that was
// not compared: it counts as changed, and as one that writes.
type Standing struct {
	same    bool
	changed string // how its definition differs, if it does
	// ReadsOnly: the server says that the tool only reads, and did so in the pin that the
	// user has accepted. A description or schema that changed does not end it.
	ReadsOnly bool
	// Since is when the server first said so, in the definition that is pinned. Accepted: that
	// does not say so, and the user has taken the server's later word (AcceptHint).
	Since    time.Time
	Accepted bool
	// Unaccepted is why the tool does not count as one that only reads, though the server now
	// says so; it is empty if the server does not. Acceptable reports that AcceptHint can help.
	Unaccepted string
	Acceptable bool
}

// Changed describes how the tool's definition differs from the pinned one; it is "" if it
// does not.
func (s Standing) Changed() string {
	if s.same {
		return ""
	}
	return cmp.Or(s.changed, "its definition was not compared with what is pinned")
}

// Standing compares a tool with its pin. known returns the tools of the server, nil if
// they are not known.
func (c *Comparison) Standing(t Definition, known func() []Definition) (s Standing) {
	defer contain.Recover("comparing a tool with its pin", func(err error) { s = Standing{changed: err.Error()} })
	c.mu.Lock()
	defer c.mu.Unlock()
	same := func() bool { return c.compared && c.err == nil && c.pinned(t.Name).Digest == t.Digest }
	if !same() && (!c.compared || c.Store.Stamp(c.Key) != c.stamp) { // another process may have accepted it
		if sent := known(); sent != nil {
			c.compare(sent)
		}
	}
	if s.same = same(); !s.same {
		s.changed = c.changed(t)
	}
	if !t.Hints.ReadOnly {
		return s
	}
	const ignored = "the server says that it only reads, which does not count, since "
	switch {
	case !c.compared || c.err != nil || c.pins == nil:
		s.Unaccepted = ignored + "it cannot be compared with what is pinned"
	case c.unkept && c.Store.Dir != "": // what the pin said in an earlier process is not known
		s.Unaccepted = ignored + "pins cannot be kept"
		if c.keepErr != nil {
			s.Unaccepted += ": " + c.keepErr.Error()
		}
	case s.same || c.hintAccepted(t):
		pin := c.pinned(t.Name)
		s.ReadsOnly, s.Accepted = true, !s.same && !t.Hints.believed(pin.Hints)
		if !s.Accepted {
			s.Since = pin.Since
		}
	default:
		s.Acceptable = t.Hints.believed(Hints{ReadOnly: true})
		before := "did not say so when the tool was pinned"
		switch pin := c.pinned(t.Name); {
		case pin.Digest == "":
			before = "has added it since its tools were pinned"
		case pin.Hints.ReadOnly:
			before = "says meanwhile that it destroys something too"
		}
		s.Unaccepted = fmt.Sprintf("the server says that it only reads, but %s, and you have not accepted that: toolcell servers pins accept %s %s",
			before, text.ShellWord(c.name), text.ShellWord(t.Name))
	}
	return s
}

// hintAccepted reports whether the user has accepted that a tool only reads, whatever else
// of its definition has changed. c.mu is held.
func (c *Comparison) hintAccepted(t Definition) bool {
	if t.Hints.believed(c.pinned(t.Name).Hints) {
		return true
	}
	now := c.pins.Tools[t.Name]
	return now != nil && now.ReadsOnly && now.Now().Digest == t.Digest && t.Hints.believed(Hints{ReadOnly: true})
}

// changed describes how a tool differs from its pin. c.mu is held.
func (c *Comparison) changed(t Definition) string {
	if c.err != nil {
		return "its definition cannot be compared with what is pinned: " + c.err.Error()
	}
	if c.pins == nil {
		return "its definition cannot be compared with what is pinned"
	}
	how := "its definition differs from the one that is pinned"
	if pin := c.pins.Tools[t.Name]; pin != nil && pin.Change() != Unchanged {
		how = happened(pin)
	}
	return fmt.Sprintf("%s (now sha256:%.12s); to see the change: toolcell servers pins %s; to accept it: toolcell servers pins accept %s %s",
		how, t.Digest, text.ShellWord(c.name), text.ShellWord(c.name), text.ShellWord(t.Name))
}

// happened describes a tool that differs from its pin.
func happened(t *Tool) string {
	if t.Pinned == nil {
		return "it is a new tool, added on " + day(t.Seen.Since)
	}
	return "its definition has changed since " + day(t.Pinned.Since)
}

func day(t time.Time) string { return t.Local().Format(time.DateOnly) }

// Notes returns notes about shown tools that no run has had yet; those of others wait until
// they are shown. Record or Learn must have been called before.
func (c *Comparison) Notes(shown func(tool string) bool) (notes []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		if c.told {
			return nil
		}
		c.told = true
		return []string{fmt.Sprintf("the tools of server %q cannot be compared with what is pinned of them: %s", c.name, c.err)}
	}
	if len(c.pins.Unnoted(shown)) == 0 {
		return nil
	}
	server, names, err := c.Store.Note(c.Key, shown)
	if err != nil || server == nil {
		names, server = c.pins.Unnoted(shown), c.pins // which this process tells then
	}
	byKind := map[string][]string{}
	for _, name := range names {
		t := server.Tools[name]
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
		notes = append(notes, c.note(kind, byKind[kind], server))
	}
	// They are noted by now, some perhaps by another process.
	for _, name := range c.pins.Unnoted(shown) {
		c.pins.Tools[name].Now().Noted = true
	}
	return notes
}

// maxNotedTools is how many tools a note names.
const maxNotedTools = 5

func (c *Comparison) note(kind string, names []string, server *Server) string {
	t := server.Tools[names[0]]
	which := fmt.Sprintf("tool %q of server %q", names[0], c.name)
	several := fmt.Sprintf("%d tools of server %q (%s)", len(names), c.name, text.QuoteList(names, maxNotedTools))
	show := "toolcell servers pins " + text.ShellWord(c.name)
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
