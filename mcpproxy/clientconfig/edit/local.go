package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/plainjson"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// A localScope has the servers that Claude Code keeps for one directory, under
// "projects" of its file. claude mcp add puts them there by default.
type localScope struct {
	dir     string
	servers map[string]json.RawMessage
	off     []string
}

// localScopes returns those of a text that have servers, in the order of their
// directories.
func (p Target) localScopes(data []byte) (all []localScope) {
	var top struct {
		Projects map[string]struct {
			McpServers         map[string]json.RawMessage
			DisabledMcpServers []string
		}
	}
	if p.dialect.Client != "claude" || p.Project {
		return nil
	}
	text, err := plainjson.Convert(p.File, bytes.Clone(data))
	if err != nil || json.Unmarshal(text, &top) != nil {
		return nil
	}
	for _, dir := range slices.Sorted(maps.Keys(top.Projects)) {
		if project := top.Projects[dir]; len(project.McpServers) > 0 {
			all = append(all, localScope{dir, project.McpServers, project.DisabledMcpServers})
		}
	}
	return all
}

// In returns the target for the servers that the client keeps for one directory,
// and p itself for the empty one.
func (p Target) In(dir string) Target {
	if dir == "" {
		return p
	}
	d := *p.dialect
	d.Projects = true
	p.dialect, p.options.Dir, p.dir = &d, dir, dir
	return p
}

// text is a file with the servers of the scope alone: the client's may be large.
func (s localScope) text() []byte {
	text, err := json.Marshal(map[string]any{"projects": map[string]any{s.dir: map[string]any{"mcpServers": s.servers}}})
	if err != nil {
		panic(fmt.Sprintf("writing what was read as JSON: %v", err))
	}
	return text
}

// entries reads the servers of the scope.
func (s localScope) entries(p Target) []clientconfig.Entry {
	all, err := p.In(s.dir).entries(p.File, s.text())
	if err != nil {
		return nil // it was read before
	}
	return all
}

// planLocal finds the servers of single directories that can be moved. At the new
// place they are for the same directories.
func (p Target) planLocal(data []byte, values map[string]string, here config.Config) (m Move) {
	for _, scope := range p.localScopes(data) {
		q, text := p.In(scope.dir), scope.text()
		for _, e := range scope.entries(p) {
			if p.starts(e) {
				continue
			}
			moving, err := q.moving(text, e, values, here)
			if slices.Contains(scope.off, e.Name) {
				err = fmt.Errorf("it is switched off there, which only %s knows of", p.Title)
			}
			if err != nil {
				m.Stay = append(m.Stay, config.Problem{Source: p.File, Server: e.Name, Reason: fmt.Sprintf("in %s: %v", scope.dir, err)})
				continue
			}
			moving.Dir = scope.dir
			m.Servers = append(m.Servers, moving)
		}
	}
	return m
}
