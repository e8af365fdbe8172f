package edit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/plainjson"
)

// A scope has the servers that a client keeps for everywhere, or those that Claude Code keeps
// for one directory, under "projects" of its file. claude mcp add puts them there by default.
type scope struct {
	dir     string // empty is everywhere
	file    *clientconfig.File
	entries []clientconfig.Entry
	off     []string // servers that are switched off there
}

// scopes returns those of a text: that of everywhere, which c has, and the others in the order of
// their directories.
func (p Target) scopes(c *contents, data []byte, values map[string]string) []scope {
	all := []scope{{file: c.file, entries: c.entries}}
	var top struct {
		Projects map[string]struct {
			McpServers         map[string]json.RawMessage
			DisabledMcpServers []string
		}
	}
	if p.dialect.Client != "claude" || p.Project || !decodeFile(p.File, data, &top) {
		return all
	}
	for _, dir := range slices.Sorted(maps.Keys(top.Projects)) {
		project := top.Projects[dir]
		type object = map[string]any
		alone, err := json.Marshal(object{"projects": object{dir: object{"mcpServers": project.McpServers}}})
		if err != nil {
			panic(fmt.Sprintf("writing what was read as JSON: %v", err))
		}
		file, err := p.in(dir).open(p.File, alone, values) // its servers alone: the client's file may be large
		if err == nil && len(project.McpServers)+len(project.DisabledMcpServers) > 0 {
			all = append(all, scope{dir, file, parsed(file), project.DisabledMcpServers})
		}
	}
	return all
}

// decodeFile reads a text with or without comments, and reports whether that succeeds.
func decodeFile(path string, data []byte, v any) bool {
	text, err := plainjson.Convert(path, bytes.Clone(bytes.TrimPrefix(data, byteOrderMark)))
	return err == nil && json.Unmarshal(text, v) == nil
}

// in returns the target for the servers that the client keeps for one directory,
// and p itself for the empty one.
func (p Target) in(dir string) Target {
	if dir == "" {
		return p
	}
	d := *p.dialect
	d.Projects = true
	p.dialect, p.options.Dir, p.dir = &d, dir, dir
	return p
}
