package edit

import (
	"maps"
	"path/filepath"

	"github.com/toolcell/toolcell/internal/state"
)

// Journal remembers what was done to clients' files, so that it can be undone.
type Journal struct{ file state.File[Record] }

// A Record is what was done to one file.
type Record struct {
	Name    string   `json:"name"`              // of the entry
	Backup  string   `json:"backup,omitempty"`  // the file as it was before; empty if there was none
	Sum     string   `json:"sum"`               // of the file as it was left
	MadeKey bool     `json:"madeKey,omitempty"` // it had no place for servers
	Moved   []string `json:"moved,omitempty"`   // servers that went to MovedTo
	// Local are those of them that the client had for single directories, by
	// directory.
	Local   map[string][]string `json:"local,omitempty"`
	MovedTo string              `json:"movedTo,omitempty"`
	// MovedSum is of MovedTo as it was left. While neither file has been changed
	// since, the backup holds the original.
	MovedSum string `json:"movedSum,omitempty"`
	// MadeDirs are folders that were made for the two files, the innermost first.
	MadeDirs []string `json:"madeDirs,omitempty"`
}

// AddMoved notes the servers that a move takes along.
func (r *Record) AddMoved(m Move) {
	for dir, names := range m.ByDir() {
		if dir == "" {
			r.Moved = append(r.Moved, names...)
			continue
		}
		if r.Local == nil {
			r.Local = map[string][]string{}
		}
		r.Local[dir] = append(r.Local[dir], names...)
	}
}

// ByDir returns the names of the servers that were moved, by the directory that
// the client had them for; the empty one is everywhere.
func (r Record) ByDir() map[string][]string {
	all := map[string][]string{}
	maps.Copy(all, r.Local)
	if len(r.Moved) > 0 {
		all[""] = r.Moved
	}
	return all
}

// NewJournal keeps its file in dir.
func NewJournal(dir string) Journal {
	return Journal{state.File[Record]{Path: filepath.Join(dir, "installs.json")}}
}

// Of is what was done to a file, if anything.
func (i Journal) Of(file string) (Record, bool, error) {
	all, err := i.file.Read()
	done, ok := all[file]
	return done, ok, err
}

// Files returns what was done, by file.
func (i Journal) Files() (map[string]Record, error) { return i.file.Read() }

// Set notes what was done to a file.
func (i Journal) Set(file string, done Record) error {
	return i.file.Change(func(all map[string]Record) { all[file] = done })
}

// Forget notes that it is undone.
func (i Journal) Forget(file string) error {
	return i.file.Change(func(all map[string]Record) { delete(all, file) })
}
