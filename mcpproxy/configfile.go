package mcpproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/rawjson"
	"github.com/toolcell/toolcell/mcpproxy/statefile"
)

// maxConfigSize bounds one file. ~/.claude.json also holds Claude's history
// and can be several MB.
const maxConfigSize = 16 << 20

// A configFile is one file, read: its entries are still as it writes them.
type configFile struct {
	place   location
	options fileOptions
	dialect *dialect // as the location says, or as was guessed
	base    string   // what relative paths in it are relative to
	data    []byte
	entries []rawjson.Member
	inputs  map[string]config.Input
	values  map[string]string // of inputs, as the user set them
	off     map[string]bool   // servers that the file switches off elsewhere than in their entries

	reads map[string][]byte // what entries named and was read: path → digest of its text
}

// openFile reads a file and finds its entries.
func openFile(p location, o fileOptions) (*configFile, error) {
	f := &configFile{place: p, options: o, dialect: p.dialect, base: o.dir, reads: map[string][]byte{}}
	if !p.project && p.text == "" {
		f.base = filepath.Dir(p.path)
	}
	f.data = []byte(p.text)
	if p.text == "" {
		var err error
		if f.data, err = statefile.ReadRegular(p.path, maxConfigSize); err != nil {
			return nil, err
		}
	}
	text, err := toJSON(p.path, f.data)
	if err != nil {
		return nil, err
	}
	top, err := rawjson.Members(text)
	if err != nil {
		return nil, err
	}
	found := f.dialect.settings
	if f.dialect.projects {
		if err := f.claudeProject(o.dir, top); err != nil {
			return nil, err
		}
	}
	for _, key := range f.dialect.keys {
		ok, err := f.take(top, key)
		if err != nil {
			return nil, err
		}
		if ok && strings.Contains(key, ".") {
			found = true
			break // mcp.servers is within mcp, which older versions have
		}
		found = found || ok
	}
	if !found && f.dialect.guess {
		found, err = f.guess(top)
	}
	if err != nil {
		return nil, err
	}
	if !found && p.bare && isEntry(top) {
		name := strings.TrimSuffix(filepath.Base(p.path), filepath.Ext(p.path))
		f.entries, found = []rawjson.Member{{Name: name, Value: text}}, true
	}
	if !found {
		return nil, fmt.Errorf("has no %q", f.dialect.keys[0])
	}
	if o.values != nil {
		f.values = o.values(p.path)
	}
	f.readInputs(top)
	f.readSwitches(top)
	return f, nil
}

// read reads a file that an entry names, and keeps in mind that it did.
func (f *configFile) read(path string) ([]byte, error) {
	if _, known := f.reads[path]; !known && len(f.reads) == maxNamedFiles {
		return nil, fmt.Errorf("is one of more than %d that the config names", maxNamedFiles)
	}
	data, err := statefile.ReadRegular(path, maxNamedFile)
	sum := sha256.Sum256(data)
	f.reads[path] = sum[:]
	return data, err
}

const (
	maxNamedFile  = 1 << 20 // an env file, or a file with one value
	maxNamedFiles = 1000    // by one config file
)

// sum is what trust in the file is kept by: all that decides what it starts.
func (f *configFile) sum() string {
	h := sha256.New()
	own := sha256.Sum256(f.data)
	h.Write(own[:])
	for _, path := range slices.Sorted(maps.Keys(f.reads)) {
		fmt.Fprintf(h, "%q %x\n", path, f.reads[path])
	}
	return hex.EncodeToString(h.Sum(nil))
}
