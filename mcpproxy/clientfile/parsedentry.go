package clientfile

import (
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
)

// An Entry is an entry of a file.
type Entry struct {
	Name     string
	Server   config.Server
	Disabled bool
	Inputs   []config.Input // that it names, with a value or without
	Err      error          // what is wrong with it, a missing value too
}

// Parse reads one entry, whatever is in it.
func (f *File) Parse(e rawjson.Member) (r Entry) {
	r.Name = e.Name
	if r.Err = config.CheckName(e.Name); r.Err != nil {
		return r
	}
	if f.off[e.Name] {
		r.Disabled = true
		return r
	}
	x := f.expander()
	r.Server, r.Disabled, r.Err = parseEntry(f, e, x)
	r.Inputs = x.names
	for i := range r.Inputs {
		r.Inputs[i].Source, r.Inputs[i].Server = f.Location.Path, e.Name
	}
	if len(x.missing) > 0 && r.Err == nil && !r.Disabled {
		r.Err = config.MissingValues(e.Name, x.missing)
	}
	r.Server.Name, r.Server.Source, r.Server.Client = e.Name, f.Location.Path, f.Dialect.Client
	return r
}

// AsWritten reads an entry without expanding the variables in it. Of a broken
// one it gives what can be read.
func (f *File) AsWritten(e rawjson.Member) (config.Server, error) {
	s, _, err := parseEntry(f, e, &expander{raw: true})
	return s, err
}
