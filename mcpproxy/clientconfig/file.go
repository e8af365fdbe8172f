package clientconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/internal/rawjson"
	"github.com/toolcell/toolcell/internal/state"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/plainjson"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// MaxSize bounds one file. ~/.claude.json also holds Claude's history
// and can be several MB.
const MaxSize = 16 << 20

// maxProject bounds a file of a project, which is anyone's: it is read before the user
// trusts it, and nothing can cancel that.
const maxProject = 96 << 10

// A File is a config file. Its entries are not parsed yet.
type File struct {
	Location Location
	options  Options
	Dialect  *Dialect // as the location says, or as was guessed
	base     string   // what relative paths in it are relative to
	data     []byte
	Entries  []rawjson.Member
	Local    int // so many of them, the first, are the user's own for this project alone
	inputs   map[string]config.Input
	values   map[string]string // of inputs, as the user set them
	off      map[string]bool   // servers that the file switches off elsewhere than in their entries

	Reads map[string][]byte // what entries named and was read: path → digest of its text
}

// Open reads the file at p and finds its entries. The error does not have the path; it is
// fs.ErrNotExist if there is no file.
func Open(p Location, o Options) (*File, error) {
	f := &File{Location: p, options: o, Dialect: p.Dialect, base: o.Dir, off: map[string]bool{}, Reads: map[string][]byte{}}
	if p.rank != rankProject && !strings.HasPrefix(p.Path, "$") {
		f.base = filepath.Dir(p.Path)
	}
	f.data = []byte(p.Text)
	if p.Text == "" {
		var err error
		most := int64(MaxSize)
		if p.rank == rankProject {
			most = maxProject
		}
		if f.data, err = state.ReadRegular(p.Path, most); err != nil {
			return nil, err
		}
	}
	text, err := plainjson.Convert(p.Path, f.data)
	if err != nil {
		return nil, err
	}
	top, err := rawjson.Members(text)
	if err != nil {
		return nil, err
	}
	found := false
	if f.Dialect.Projects {
		if err := f.claudeProject(o.Dir, top); err != nil {
			return nil, err
		}
		f.Local = len(f.Entries)
	}
	within := ""
	for _, key := range f.Dialect.Keys {
		if key == within {
			continue // mcp/servers is within mcp, which older versions have
		}
		ok, err := f.addEntries(top, key)
		if err != nil {
			return nil, err
		}
		if outer, _, nested := strings.Cut(key, "/"); ok && nested {
			within = outer
		}
		found = found || ok
	}
	settings := f.Dialect.settings // guess sets another dialect
	if !found && f.Dialect.guess {
		found, err = f.guess(top)
	}
	if err != nil {
		return nil, err
	}
	found = found || settings
	if !found && p.Bare && isEntry(top) {
		name := strings.TrimSuffix(filepath.Base(p.Path), filepath.Ext(p.Path))
		f.Entries, found = []rawjson.Member{{Name: name, Value: text}}, true
	}
	if !found {
		return nil, fmt.Errorf("has no %q", f.Dialect.Keys[0])
	}
	if o.Values != nil {
		f.values = o.Values(p.Path)
	}
	f.readInputs(top)
	f.readSwitches(top)
	return f, nil
}

// read reads a file that an entry names, and records its digest.
func (f *File) read(path string) ([]byte, error) {
	if _, known := f.Reads[path]; !known && len(f.Reads) == maxNamedFiles {
		return nil, fmt.Errorf("is one of more than %d that the config names", maxNamedFiles)
	}
	data, err := state.ReadRegular(path, maxNamedFile)
	sum := sha256.Sum256(data)
	f.Reads[path] = sum[:]
	return data, err
}

const (
	maxNamedFile  = 1 << 20 // an env file, or a file with one value
	maxNamedFiles = 1000    // by one config file
)

// Sum returns a digest of the file and of the files that its entries name, which together
// decide what it starts. Trust is for one Sum.
func (f *File) Sum() string {
	h := sha256.New()
	own := sha256.Sum256(f.data)
	h.Write(own[:])
	for _, path := range slices.Sorted(maps.Keys(f.Reads)) {
		fmt.Fprintf(h, "%q %x\n", path, f.Reads[path])
	}
	return hex.EncodeToString(h.Sum(nil))
}
