package edit

import (
	"path/filepath"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
)

// A SelfEntry is an entry in a client's file that starts this program, itself and not
// through a launcher or a shell.
type SelfEntry struct {
	Name    string
	Command string // as the file has it
	Path    string // the program that is found there, "" if there is none
}

// SelfEntries returns the entries for this program that are switched on, wherever the
// program was when they were written.
func (p Target) SelfEntries(data []byte) (found []SelfEntry, err error) {
	_, _, all, err := p.read(data)
	for _, e := range all {
		direct := filepath.Base(e.Server.Command) == clientconfig.ProgramName || filepath.Base(e.Server.Command) == filepath.Base(p.options.Self)
		if direct && !e.Disabled && p.starts(e) {
			found = append(found, SelfEntry{e.Name, e.Server.Command, e.Server.LookPath(p.options.Dir, e.Server.Command)})
		}
	}
	return found, err
}
