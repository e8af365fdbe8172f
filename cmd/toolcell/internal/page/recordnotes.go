package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/record/history"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/timeline"
)

// maxNewer bounds the files that are named because a newer toolcell wrote to them.
const maxNewer = 10

// listNotes says what of the record is not in a list of runs, as runs list does.
func (s *Server) listNotes(rows []row) (notes []string) {
	all := make([]history.Run, len(rows))
	for i, r := range rows {
		all[i] = r.Run
	}
	if note := timeline.LostNote(all); note != "" {
		notes = append(notes, strings.ToUpper(note[:1])+note[1:]+".")
	}
	return append(notes, newerNotes(s.o.Record.Newer())...)
}

// newerFiles says which of the files that have entries of a run a newer toolcell wrote to as well.
func (s *Server) newerFiles(entries []history.Entry) []string {
	return newerNotes(slices.DeleteFunc(s.o.Record.Newer(), func(f history.Finding) bool {
		return !slices.ContainsFunc(entries, func(e history.Entry) bool { return e.File == f.File })
	}))
}

// newerNotes says that not all of these files is shown, of the first ones.
func newerNotes(files []history.Finding) (notes []string) {
	for _, f := range files[:min(len(files), maxNewer)] {
		notes = append(notes, "Not all of "+f.File+" is shown: "+f.Text+".")
	}
	if n := len(files) - maxNewer; n > 0 {
		notes = append(notes, fmt.Sprintf("Nor is all of %d more files.", n))
	}
	return notes
}

// noneListed says why a list is empty.
func (s *Server) noneListed(q query) string {
	switch {
	case q.filtered():
		return "No runs fit."
	case len(s.o.Record.Newer()) > 0:
		return "No runs that this version of toolcell can read are on record. Use the newer one."
	}
	return "No runs are on record yet."
}

// missing adds to the error of a run that is not there that it may be in a file that cannot be read.
func (s *Server) missing(err error) string {
	if errors.Is(err, history.ErrNoRun) && len(s.o.Record.Newer()) > 0 {
		return err.Error() + ". Parts of the record were written by a newer toolcell, which may know it."
	}
	return err.Error() + "."
}
