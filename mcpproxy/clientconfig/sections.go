package clientconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/text"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// isEntry reports whether an object is a server itself.
func isEntry(top []rawjson.Member) bool {
	for _, key := range []string{"command", "cmd", "url", "httpUrl", "serverUrl", "uri"} {
		if _, ok := rawjson.Find(top, key); ok {
			return true
		}
	}
	return false
}

// guess takes the servers under a key that tells whose dialect it is.
func (f *File) guess(top []rawjson.Member) (bool, error) {
	for _, g := range guessed {
		if ok, err := f.addEntries(top, g.key); ok || err != nil {
			f.Dialect = DialectOf(g.client)
			return ok, err
		}
	}
	return false, nil
}

// addEntries adds the entries under a key, a/b being within an object.
func (f *File) addEntries(top []rawjson.Member, key string) (bool, error) {
	first, rest, nested := strings.Cut(key, "/")
	raw, ok := rawjson.Find(top, first)
	if !ok || rawjson.IsNull(raw) {
		return ok && !nested, nil
	}
	if nested {
		inner, err := rawjson.Members(raw)
		if err != nil {
			return false, nil
		}
		// A server may be called "servers": then it has a type or a command.
		if raw, ok := rawjson.Find(inner, rest); ok {
			if one, err := rawjson.Members(raw); err == nil && isEntry(one) {
				return false, nil
			}
		}
		return f.addEntries(inner, rest)
	}
	if list, err := rawjson.Items(raw); err == nil {
		return true, f.addList(key, list)
	}
	servers, err := rawjson.Members(raw)
	if err != nil {
		return true, fmt.Errorf("%q is not an object of servers", key)
	}
	f.Entries = append(f.Entries, servers...)
	return true, nil
}

// addList adds servers that are a list, each with its name in it.
func (f *File) addList(key string, list []json.RawMessage) error {
	if len(list) == 0 && f.Dialect.Client != "continue" {
		return fmt.Errorf("%q is not an object of servers", key)
	}
	for i, raw := range list {
		all, err := rawjson.Members(raw)
		if err != nil {
			return fmt.Errorf("item %d of %q is %s", i+1, key, insteadOfObject(raw))
		}
		var name string
		if text, ok := rawjson.Find(all, "name"); !ok || json.Unmarshal(text, &name) != nil || name == "" {
			return fmt.Errorf("item %d of %q has no \"name\"", i+1, key)
		}
		f.Entries = append(f.Entries, rawjson.Member{Name: name, Value: raw})
	}
	return nil
}

// insteadOfObject says what stands where a server should: a dash or a name in YAML with
// nothing behind it is null.
func insteadOfObject(raw json.RawMessage) string {
	if rawjson.IsNull(raw) {
		return "empty (null), not an object with a server's command or URL"
	}
	return "not an object"
}

// claudeProject takes the servers that the user gave to this project alone.
// They come before the user's others.
func (f *File) claudeProject(dir string, top []rawjson.Member) error {
	raw, ok := rawjson.Find(top, "projects")
	if !ok || dir == "" {
		return nil
	}
	projects, err := rawjson.Members(raw)
	if err != nil {
		return errors.New(`"projects" is not an object`)
	}
	for _, dir := range slices.Compact([]string{filepath.Clean(dir), resolveLinks(dir)}) {
		project, ok := rawjson.Find(projects, dir)
		if !ok {
			continue
		}
		settings, err := rawjson.Members(project)
		if err != nil {
			return fmt.Errorf("project %q is not an object", dir)
		}
		if _, err := f.addEntries(settings, "mcpServers"); err != nil {
			return err
		}
		var off struct{ DisabledMcpServers []string }
		_ = json.Unmarshal(project, &off) // as readSwitches
		f.switchOff(off.DisabledMcpServers...)
	}
	return nil
}

// readInputs takes what VS Code asks its user for.
func (f *File) readInputs(top []rawjson.Member) {
	raw, ok := rawjson.Find(top, "inputs")
	if mcp, there := rawjson.Find(top, "mcp"); there && !ok { // of settings.json
		inner, _ := rawjson.Members(mcp)
		raw, ok = rawjson.Find(inner, "inputs")
	}
	if !ok {
		return
	}
	var all []struct {
		ID, Description, Default string
		Password                 bool
		Options                  []any
	}
	_ = json.Unmarshal(raw, &all) // malformed inputs get no description
	f.inputs = map[string]config.Input{}
	for _, in := range all {
		i := config.Input{ID: in.ID, Description: text.Clip(in.Description, 1024), Default: in.Default, Secret: in.Password}
		for _, o := range in.Options {
			if m, ok := o.(map[string]any); ok { // {"label": …, "value": …}
				o = m["value"]
			}
			if s, ok := o.(string); ok && len(i.Options) < 100 {
				i.Options = append(i.Options, s)
			}
		}
		f.inputs[in.ID] = i
	}
}

// readSwitches takes what Gemini and Qwen say of their servers outside of the entries.
func (f *File) readSwitches(top []rawjson.Member) {
	if f.Dialect.Client != "gemini" && f.Dialect.Client != "qwen" {
		return
	}
	raw, _ := rawjson.Find(top, "mcp")
	var mcp struct{ Excluded, Allowed []string }
	_ = json.Unmarshal(raw, &mcp) // anything else switches nothing off
	f.switchOff(mcp.Excluded...)
	for _, e := range f.Entries {
		if len(mcp.Allowed) > 0 && !slices.Contains(mcp.Allowed, e.Name) {
			f.switchOff(e.Name)
		}
	}
}

// switchOff notes servers that are switched off outside of their entries.
func (f *File) switchOff(names ...string) {
	for _, n := range names {
		f.off[n] = true
	}
}
