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

// A localScope has the servers that Claude Code keeps for one directory, under
// "projects" of its file. claude mcp add puts them there by default.
type localScope struct {
	dir  string
	file *clientconfig.File // its servers alone: the client's may be large
	off  []string           // servers that are switched off there
}

// localScopes returns those of a text, in the order of their directories.
func (p Target) localScopes(data []byte, values map[string]string) (all []localScope) {
	var top struct {
		Projects map[string]struct {
			McpServers         map[string]json.RawMessage
			DisabledMcpServers []string
		}
	}
	if p.dialect.Client != "claude" || p.Project || !decodeFile(p.File, data, &top) {
		return nil
	}
	for _, dir := range slices.Sorted(maps.Keys(top.Projects)) {
		project := top.Projects[dir]
		type object = map[string]any
		alone, err := json.Marshal(object{"projects": object{dir: object{"mcpServers": project.McpServers}}})
		if err != nil {
			panic(fmt.Sprintf("writing what was read as JSON: %v", err))
		}
		file, err := p.in(dir).open(p.File, alone, values)
		if err == nil && len(project.McpServers)+len(project.DisabledMcpServers) > 0 {
			all = append(all, localScope{dir, file, project.DisabledMcpServers})
		}
	}
	return all
}

func (s localScope) hasServers() bool { return len(s.file.Entries) > 0 }

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
