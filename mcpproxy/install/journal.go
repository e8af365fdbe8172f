package install

import (
	"path/filepath"

	"github.com/toolcell/toolcell/mcpproxy/statefile"
)

// Journal remembers what was done to clients' files, so that it can be undone.
type Journal struct{ file statefile.File[Record] }

// A Record is what was done to one file.
type Record struct {
	Name    string   `json:"name"`              // of the entry
	Backup  string   `json:"backup,omitempty"`  // the file as it was before; empty if there was none
	Sum     string   `json:"sum"`               // of the file as it was left
	MadeKey bool     `json:"madeKey,omitempty"` // it had no place for servers
	Moved   []string `json:"moved,omitempty"`   // servers that went to MovedTo
	MovedTo string   `json:"movedTo,omitempty"`
	// MovedSum is of MovedTo as it was left. While neither file has been changed
	// since, the backup holds the original.
	MovedSum string `json:"movedSum,omitempty"`
}

// NewJournal keeps its file in dir.
func NewJournal(dir string) Journal {
	return Journal{statefile.File[Record]{Path: filepath.Join(dir, "installs.json")}}
}

// Of is what was done to a file, if anything.
func (i Journal) Of(file string) (Record, bool, error) {
	all, err := i.file.Read()
	done, ok := all[file]
	return done, ok, err
}

// Set notes what was done to a file.
func (i Journal) Set(file string, done Record) error {
	return i.file.Change(func(all map[string]Record) { all[file] = done })
}

// Forget notes that it is undone.
func (i Journal) Forget(file string) error {
	return i.file.Change(func(all map[string]Record) { delete(all, file) })
}
