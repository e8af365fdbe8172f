package mcpproxy

import (
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
)

// A parsedEntry is an entry of a file.
type parsedEntry struct {
	name     string
	server   config.Server
	disabled bool
	inputs   []config.Input // that it names, with a value or without
	err      error          // what is wrong with it, a missing value too
}

// parse reads one entry, whatever is in it.
func (f *configFile) parse(e rawjson.Member) (r parsedEntry) {
	r.name = e.Name
	if r.err = config.CheckName(e.Name); r.err != nil {
		return r
	}
	if f.off[e.Name] {
		r.disabled = true
		return r
	}
	x := f.expander()
	r.server, r.disabled, r.err = parseEntry(f, e, x)
	r.inputs = x.names
	for i := range r.inputs {
		r.inputs[i].Source, r.inputs[i].Server = f.place.path, e.Name
	}
	if len(x.missing) > 0 && r.err == nil && !r.disabled {
		r.err = config.MissingValues(e.Name, x.missing)
	}
	r.server.Name, r.server.Source, r.server.Client = e.Name, f.place.path, f.dialect.client
	return r
}

// asWritten reads an entry without expanding the variables in it. Of a broken
// one it gives what can be read.
func (f *configFile) asWritten(e rawjson.Member) (config.Server, error) {
	s, _, err := parseEntry(f, e, &expander{raw: true})
	return s, err
}
