package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/installer"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/page"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/catalog"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// maxSignature bounds a signature on a page, in characters.
const maxSignature = 2000

// A knownServers is what is known of the user's servers when a page is made. None is started.
type knownServers struct {
	now    Options
	config config.Config
	proxy  serversProxy
}

// known finds the servers as they are now. Call close on the result.
func (o uiOptions) known() (knownServers, error) {
	now, err := o.again()
	if err != nil {
		return knownServers{}, err
	}
	quiet := slog.New(slog.DiscardHandler)
	found, err := discoverForShell(now, quiet)
	if err != nil {
		return knownServers{}, err
	}
	return knownServers{now, found.config, openProxy(found.config, now.Settings, quiet)}, nil
}

func (k knownServers) close() { _ = k.proxy.Close() } // nothing was started

// servers is what the page shows of all servers, and what a search finds.
func (o uiOptions) servers(ctx context.Context, query string) (view page.ServersView, err error) {
	k, err := o.known()
	if err != nil {
		return view, err
	}
	defer k.close()
	all := k.proxy.Servers()
	view.Next = noServersNext
	for _, st := range all {
		view.Servers = append(view.Servers, k.row(st))
	}
	if k.now.FileError != nil {
		view.Notes = append(view.Notes, k.now.FileError.Error())
	}
	for _, p := range k.proxy.Problems() {
		if p.Server == "" {
			view.Notes = append(view.Notes, p.String())
		}
	}
	view.Notes = append(view.Notes, policyTypos(k.now.Settings, all)...)
	if query == "" {
		return view, nil
	}
	docs, unknown, err := k.proxy.SearchKnown(ctx, query, searchHits)
	if view.Unknown = unknown; err != nil {
		view.Problem = err.Error()
	}
	for _, d := range docs {
		view.Found = append(view.Found, page.FoundTool{
			Server: d.Server, Tool: text.Visible(d.Tool), Signature: k.signature(d), Description: k.proxy.WithoutSecrets(d.Description), Score: d.Score,
		})
	}
	return view, nil
}

// server is what the page shows of one server, nil if there is none of the name.
func (o uiOptions) server(_ context.Context, name string) (*page.ServerView, error) {
	k, err := o.known()
	if err != nil {
		return nil, err
	}
	defer k.close()
	st, ok := statusOf(k.proxy.Servers(), name)
	if !ok {
		return nil, nil
	}
	view := &page.ServerView{ServerRow: k.row(st), About: k.proxy.WithoutSecrets(st.Description), Also: st.Also, Commands: k.commands(st)}
	if st.Alias == "" {
		return view, nil
	}
	view.Docs = k.docs(st.Name)
	pinned, err := k.proxy.Pins(st.Name)
	switch {
	case err != nil:
		view.Problem = "Changes to its tools are not noticed: " + err.Error()
	case pinned != nil:
		view.Pins = k.pins(newPinRow(st.Name, pinned))
		if len(view.Pins.Changes) > 1 {
			view.Commands = append(view.Commands, page.Command{Why: "to accept all changes to its tools", Text: "toolcell servers pins accept " + text.ShellWord(st.Name)})
		}
	}
	return view, nil
}

// statusOf returns the server of a name: that which can be used, if there is one.
func statusOf(all []mcpproxy.ServerStatus, name string) (mcpproxy.ServerStatus, bool) {
	for _, st := range all {
		if st.Name == name && st.Alias != "" {
			return st, true
		}
	}
	i := slices.IndexFunc(all, func(st mcpproxy.ServerStatus) bool { return st.Name == name && name != "" })
	if i < 0 {
		return mcpproxy.ServerStatus{}, false
	}
	return all[i], true
}

// row is a server in the list: as servers list has it, with what is known of its tools.
func (k knownServers) row(st mcpproxy.ServerStatus) page.ServerRow {
	row := page.ServerRow{Name: st.Name, Status: st.Status, Transport: transportOf(st), Source: st.Source}
	remarks := []string{remark(st), st.Partial}
	if st.Alias != "" {
		tools := k.proxy.KnownTools(st.Name)
		row.Known, row.Tools, row.Tokens = tools != nil, len(tools), tokensOf(tools)
		if pinned, err := k.proxy.Pins(st.Name); err == nil {
			remarks = append(remarks, newPinRow(st.Name, pinned).summary())
		}
	}
	remarks = slices.DeleteFunc(remarks, func(s string) bool { return s == "" })
	row.Remark = console.OneLine(strings.Join(remarks, "; "), maxRemark)
	return row
}

// tokensOf estimates what the definitions of tools cost a client that gets them itself.
func tokensOf(tools []catalog.Tool) (tokens int) {
	for _, t := range tools {
		if said, err := installer.ToolText(t); err == nil {
			tokens += installer.EstimateTokens(said)
		}
	}
	return tokens
}

// docs are the tools of a server, as a model sees them.
func (k knownServers) docs(server string) (shown []page.ShownTool) {
	docs, tools := k.proxy.KnownDocs(server, page.MaxTools), k.proxy.KnownTools(server)
	for i, d := range docs {
		full := k.proxy.WithoutSecrets(tools[i].Description)
		tool := page.ShownTool{Name: text.Visible(d.Tool), Signature: k.signature(d), Description: text.Summary(full)}
		if tool.Description != full {
			tool.Full = full
		}
		shown = append(shown, tool)
	}
	return shown
}

func (k knownServers) signature(d mcpproxy.ToolDoc) string {
	return text.CutAfter(k.proxy.WithoutSecrets(d.Signature), maxSignature)
}

// pins is a row of servers pins, as a page shows it.
func (k knownServers) pins(row pinRow) *page.PinsView {
	view := &page.PinsView{Since: row.Since, Summary: strings.TrimPrefix(row.summary(), "tools: ")}
	for _, c := range row.Changes[:min(len(row.Changes), page.MaxChanges)] {
		change := page.PinChange{Tool: text.Visible(c.Tool), Change: string(c.Change), Noticed: c.Noticed, Reads: c.Reads}
		if change.Tool == c.Tool { // as it can be typed
			change.Accept = "toolcell servers pins accept " + text.ShellWord(row.Server) + " " + text.ShellWord(c.Tool)
		}
		for _, d := range c.Differences {
			change.Differences = append(change.Differences, page.Difference{Part: d.Part, Diff: k.proxy.WithoutSecrets(d.Diff)})
		}
		view.Changes = append(view.Changes, change)
	}
	view.More = len(row.Changes) - len(view.Changes)
	for _, h := range row.Hidden[:min(len(row.Hidden), page.MaxChanges)] {
		hidden := page.HiddenTool{Tool: text.Visible(h.Tool), In: h.In}
		for _, line := range h.Lines {
			hidden.Lines = append(hidden.Lines, k.proxy.WithoutSecrets(line))
		}
		view.Hidden = append(view.Hidden, hidden)
	}
	return view
}

// commands are what can be typed about a server.
func (k knownServers) commands(st mcpproxy.ServerStatus) (all []page.Command) {
	name := text.ShellWord(st.Name)
	add := func(why, command string) { all = append(all, page.Command{Why: why, Text: command}) }
	if login := "toolcell servers login " + name; strings.Contains(st.Error, login) {
		add("to log in", login)
	}
	if st.Status == config.StatusUntrusted {
		add("to let this file of a project start its servers, when you have read it", "toolcell servers trust "+text.ShellWord(st.Source))
	}
	for _, in := range k.config.Inputs {
		if st.Status == config.StatusNeedsValue && in.Server == st.Name && in.Source == st.Source && !in.Set {
			add("to set a value that it needs", "toolcell servers set "+name+" "+text.ShellWord(in.ID))
		}
	}
	if st.Alias != "" {
		add("to start it and ask for its tools", "toolcell servers check "+name)
	}
	return all
}
