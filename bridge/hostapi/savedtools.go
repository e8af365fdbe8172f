package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/toolcell/toolcell/bridge/gate"
	"github.com/toolcell/toolcell/bridge/runner"
	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/internal/memory"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
)

// savedServer is the server name under which saved tools are listed. It is also
// the name of their module.
const savedServer = gate.SavedServer

// maxSavedNotes bounds the notes on saved tools.
const maxSavedNotes = 5

// savedTools are the tools that runs have saved, as one run uses them.
type savedTools struct {
	store  savedtools.Store
	gate   *gate.Gate
	log    *slog.Logger
	record savedRecord

	mu    sync.Mutex
	notes []string // on tools that the code did not get or replaced
}

// savedTool answers the methods about one saved tool.
func (a *API) savedTool(ctx context.Context, method, name string, raw json.RawMessage) (json.RawMessage, error) {
	if method == "saved_source" {
		return a.savedSource(ctx, name)
	}
	if err := a.working.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer a.working.Release(1)
	if method == "remove_tool" {
		return null, a.saved.remove(name)
	}
	release, err := memory.Take(ctx, min(len(raw), maxSaving), memory.SavedTool)
	if err != nil {
		return nil, err
	}
	defer release()
	return null, a.saved.save(raw, a.o.Gate.Reads())
}

// savedSource returns the source of a saved tool. If it may hold private data, and the
// run can reach hosts, the user is asked first.
func (a *API) savedSource(ctx context.Context, name string) (json.RawMessage, error) {
	tool, err := a.loadSaved(ctx, name)
	if err == nil {
		err = a.o.Gate.AskSaved(ctx, tool.Name, tool.Private)
	}
	if err != nil {
		return nil, err
	}
	a.o.Gate.MarkRead(tool.Private...)
	a.saved.record.given(tool)
	return encode(tool.Source, nil)
}

func (a *API) loadSaved(ctx context.Context, name string) (savedtools.Tool, error) {
	if err := a.working.Acquire(ctx, 1); err != nil {
		return savedtools.Tool{}, err
	}
	defer a.working.Release(1)
	release, err := memory.Take(ctx, 2*savedtools.MaxSource, memory.SavedTool)
	if err != nil {
		return savedtools.Tool{}, err
	}
	defer release()
	return a.saved.store.Load(name)
}

// read returns a saved tool as the code gets it in documentation. In a run that can reach
// hosts, one that may hold private data has no more than its name there, and the user is not asked.
func (s *savedTools) read(t savedtools.Tool) savedtools.Tool {
	t = s.shown(t)
	s.gate.MarkRead(t.Private...)
	return t
}

// shown is read for a tool that the code may not get.
func (s *savedTools) shown(t savedtools.Tool) savedtools.Tool {
	if len(t.Private) > 0 && s.gate.ReachesHosts() {
		return savedtools.Tool{Name: t.Name, Doc: "Saved after private data was read, and this run can reach hosts."}
	}
	return t
}

// maxSaving bounds the parameters of save_tool, in bytes: every byte of the source may be
// escaped, and it has a description.
const maxSaving = 8 * savedtools.MaxSource

// save stores a tool. Another of its name that it replaces gets a note: an earlier
// run, or the user, may rely on it.
func (s *savedTools) save(raw json.RawMessage, private []string) error {
	var tool savedtools.Tool
	if len(raw) > maxSaving {
		return fmt.Errorf("saving a tool: it has %d bytes, the most for a source is %d", len(raw), savedtools.MaxSource)
	}
	if json.Unmarshal(raw, &tool) != nil {
		return errors.New("saving a tool: its parameters have the wrong types")
	}
	tool.Private = private // not what the code says
	before, noneBefore := s.store.Show(tool.Name)
	err := s.store.Save(tool)
	if errors.Is(err, savedtools.ErrReserved) {
		return &runner.CallError{Message: err.Error(), Kind: "ValueError"} // as of a builtin's name
	}
	if err == nil {
		s.record.saved(tool)
	}
	if err == nil && noneBefore == nil && before.Source != tool.Source {
		s.note(fmt.Sprintf("saved tool %q replaced another%s", tool.Name, savedAt(before)))
	}
	return err
}

func (s *savedTools) remove(name string) error {
	err := s.store.Remove(name)
	if err == nil {
		s.record.removed(name)
	}
	return err
}

func savedAt(t savedtools.Tool) string {
	if t.Saved.IsZero() {
		return ""
	}
	return ", saved at " + t.Saved.UTC().Format("2006-01-02 15:04 UTC")
}

func (s *savedTools) export(rawNames json.RawMessage) (string, error) {
	names, err := textList(rawNames)
	if err != nil {
		return "", err
	}
	tools, err := s.store.Named(names...)
	for _, t := range tools {
		if s.read(t).Source != t.Source {
			return "", fmt.Errorf("saved tool %q was saved after private data was read, and this run can reach hosts: import it, and the user is asked", t.Name)
		}
	}
	if err == nil {
		s.record.given(tools...)
	}
	return savedtools.Module(tools), err
}

// list returns the saved tools that can be read, for the code.
func (s *savedTools) list() []savedtools.Tool {
	tools := s.all()
	for i := range tools {
		tools[i] = s.read(tools[i])
	}
	return tools
}

func (s *savedTools) all() []savedtools.Tool {
	tools, problems := s.store.List()
	for _, err := range problems {
		s.log.Warn("leaving out a saved tool", "err", err)
	}
	return tools
}

func (s *savedTools) listWithoutSource() []savedtools.Tool {
	tools := s.list()
	for i := range tools {
		tools[i].Source = ""
	}
	return tools
}

// addFailure records why the code did not get a saved tool.
func (s *savedTools) addFailure(name, why string) {
	if !savedtools.IsName(name) {
		return
	}
	s.note(fmt.Sprintf("saved tool %q was skipped: %s (runtime.remove_tool(%q) removes it)", name, text.OneLine(why, 300), name))
}

func (s *savedTools) note(note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.notes) < maxSavedNotes && !slices.Contains(s.notes, note) {
		s.notes = append(s.notes, note)
	}
}

// allNotes returns what the caller should know of the run's saved tools.
func (s *savedTools) allNotes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notes)
}

// docs returns the documentation of one saved tool, or of all if name is empty.
func (s *savedTools) docs(name string, full bool) ([]mcpproxy.ToolDoc, error) {
	if name != "" {
		tool, err := s.store.Show(name)
		return []mcpproxy.ToolDoc{savedDoc(s.read(tool), full)}, err
	}
	docs := []mcpproxy.ToolDoc{}
	for _, tool := range s.list() {
		docs = append(docs, savedDoc(tool, full))
	}
	return docs, nil
}

// found returns what a search finds among the documentation of servers and of saved
// tools.
func (s *savedTools) found(query string, ofServers []mcpproxy.ToolDoc, limit int, full bool) []mcpproxy.ToolDoc {
	private := map[string][]string{}
	var docs []mcpproxy.ToolDoc
	for _, tool := range s.all() {
		tool = s.shown(tool)
		private[tool.Name] = tool.Private
		docs = append(docs, savedDoc(tool, full))
	}
	merged := mcpproxy.MergeRanked(query, ofServers, docs, limit)
	for _, doc := range merged {
		if doc.Server == savedServer {
			s.gate.MarkRead(private[doc.Tool]...)
		}
	}
	return merged
}

// savedDoc is a saved tool in the form of a server's, with how it is used.
func savedDoc(t savedtools.Tool, full bool) mcpproxy.ToolDoc {
	d := mcpproxy.ToolDoc{
		Server: savedServer, ServerAlias: savedServer, Tool: t.Name, ToolAlias: t.Name,
		Description: strings.TrimSpace("Saved tool, no server needed: from user_tools import " + t.Name + "\n" + t.Doc),
	}
	if !full {
		first, _, _ := strings.Cut(t.Doc, "\n\n")
		d.Description = text.OneLine("Saved tool (from user_tools import "+t.Name+"). "+first, 400)
		d.Signature = text.OneLine(t.Name+t.Signature, 200)
		return d
	}
	d.Signature, d.InputSchema = t.Name+t.Signature, t.Schema
	return d
}

// infos returns the saved tools as list_tools shows those of a server.
func (s *savedTools) infos() []toolInfo {
	infos := []toolInfo{}
	for _, tool := range s.list() {
		infos = append(infos, toolInfo{tool.Name, tool.Name, tool.Doc, tool.Schema})
	}
	return infos
}
