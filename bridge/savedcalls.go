package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/signature"
	"github.com/toolcell/toolcell/mcpproxy/text"
)

// savedServer is the name under which saved tools stand beside the tools of
// servers. It is the name of their module, too.
const savedServer = "user_tools"

// maxSavedFailures bounds the notes on saved tools that do not work any more.
const maxSavedFailures = 5

// savedNames is what the runner is told ahead: it asks for a source when it
// needs one.
func (t *talk) savedNames() []string {
	names, err := t.s.saved.Names()
	if err != nil {
		t.s.o.Log.Warn("leaving out the saved tools", "err", err)
	}
	return names
}

// savedTool answers what concerns saved tools.
func (t *talk) savedTool(method string, p callParams, raw json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "save_tool":
		var tool savedtools.Tool
		if len(raw) > 8*savedtools.MaxSource { // every byte of it escaped, and what is said about it
			return nil, fmt.Errorf("saving a tool: it has %d bytes, the most for a source is %d", len(raw), savedtools.MaxSource)
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			return nil, fmt.Errorf("saving a tool: %w", err)
		}
		return json.RawMessage("null"), t.s.saved.Save(tool)
	case "saved_source":
		tool, err := t.s.saved.Show(p.Name)
		return encode(tool.Source, err)
	case "remove_tool":
		return json.RawMessage("null"), t.s.saved.Remove(p.Name)
	case "export_tools":
		names, err := textList(p.Tools)
		if err != nil {
			return nil, err
		}
		var text strings.Builder
		err = t.s.saved.Export(&text, names...)
		return encode(text.String(), err)
	case "saved_failed":
		t.noteSavedFailure(p.Name, p.Source)
		return json.RawMessage("null"), nil
	}
	tools := t.savedList()
	for i := range tools {
		tools[i].Source = ""
	}
	return encode(tools, nil)
}

// textList reads a list of texts, such as names, within bounds.
func textList(raw json.RawMessage) ([]string, error) {
	list, err := signature.ParseList(raw)
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &texts[i]); err != nil {
			return nil, fmt.Errorf("item %d is not a text", i)
		}
	}
	return texts, nil
}

// savedList gives the saved tools that can be read.
func (t *talk) savedList() []savedtools.Tool {
	tools, problems := t.s.saved.List()
	for _, err := range problems {
		t.s.o.Log.Warn("leaving out a saved tool", "err", err)
	}
	return tools
}

// noteSavedFailure keeps why the code did not get a saved tool.
func (t *talk) noteSavedFailure(name, why string) {
	if !savedtools.IsName(name) {
		return
	}
	note := fmt.Sprintf("saved tool %q was skipped: %s (runtime.remove_tool(%q) removes it)", name, text.OneLine(why, 300), name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.savedFailures) < maxSavedFailures && !slices.Contains(t.savedFailures, note) {
		t.savedFailures = append(t.savedFailures, note)
	}
}

func (t *talk) savedNotes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.savedFailures)
}

// meansSaved reports whether a server's name stands for the saved tools. A
// server that is really called so comes first.
func (t *talk) meansSaved(server string) bool {
	if server != savedServer {
		return false
	}
	_, err := t.s.o.Upstreams.Lookup(server)
	return err != nil
}

// docs gives the documentation of a server's tools, or of the saved ones.
func (t *talk) docs(ctx context.Context, p callParams) ([]mcpproxy.ToolDoc, error) {
	if !t.meansSaved(p.Server) {
		return t.s.o.Upstreams.Docs(ctx, p.Server, p.Tool, p.withSchema())
	}
	if p.Tool != "" {
		tool, err := t.s.saved.Show(p.Tool)
		return []mcpproxy.ToolDoc{savedDoc(tool, p.withSchema())}, err
	}
	docs := []mcpproxy.ToolDoc{}
	for _, tool := range t.savedList() {
		docs = append(docs, savedDoc(tool, p.withSchema()))
	}
	return docs, nil
}

// search finds tools of servers, and saved ones beside them.
func (t *talk) search(ctx context.Context, p callParams) ([]mcpproxy.ToolDoc, error) {
	found, problems, err := t.s.o.Upstreams.Search(ctx, p.Query, p.Limit, p.withSchema())
	t.noteUnsearched(problems)
	if err != nil {
		return nil, err
	}
	var saved []mcpproxy.ToolDoc
	for _, tool := range t.savedList() {
		saved = append(saved, savedDoc(tool, p.withSchema()))
	}
	return mcpproxy.MergeRanked(p.Query, found, saved, p.Limit), nil
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
		return d
	}
	d.Signature, d.InputSchema = t.Name+t.Signature, t.Schema
	return d
}

// savedTools gives the saved tools as list_tools shows those of a server.
func (t *talk) savedTools() []toolInfo {
	infos := []toolInfo{}
	for _, tool := range t.savedList() {
		infos = append(infos, toolInfo{tool.Name, tool.Name, tool.Doc, tool.Schema})
	}
	return infos
}
