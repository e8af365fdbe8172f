package edit

import (
	"maps"
	"path/filepath"

	"github.com/toolcell/toolcell/internal/state"
)

// Journal is where records of what was done to clients' files are kept in dir, by file,
// so that it can be undone.
func Journal(dir string) state.File[Record] {
	return state.File[Record]{Path: filepath.Join(dir, "installs.json")}
}

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
