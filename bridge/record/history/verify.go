package history

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

// A Finding is something about a file of the record.
type Finding struct {
	File string `json:"file"`           // with the folder of its day
	Line int    `json:"line,omitempty"` // 0 if it is of the whole file
	Text string `json:"text"`
}

func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

// A Report is the result of Verify.
type Report struct {
	Files, Entries, Values int
	Open, Killed           int // of the files: those that a process writes to, and those whose process was killed
	// Problems are what must not be: the record was changed, or parts are missing. Notes are what a
	// kill, a full disk, Forget and retention leave.
	Problems []Finding // at most 20 of a file, and how many more there are
	Notes    []Finding
	// HeadsDiffer counts the heads that the record does not match.
	HeadsDiffer int
}

// Verify reads the whole record, and compares it with heads that were kept elsewhere, which may be
// nil. The error is one of reading.
func (r *Record) Verify(heads []Head) (*Report, error) {
	v := &verifier{record: r, days: map[string]*dayList{}, removed: map[string]bool{}, heads: map[string][]Head{}, problems: map[string]int{}}
	for _, h := range heads {
		v.heads[h.Name] = append(v.heads[h.Name], h)
	}
	days, err := r.days()
	if err == nil {
		err = v.findOthers("")
	}
	if err != nil {
		return nil, err
	}
	for _, day := range days {
		if err := v.readList(day); err != nil {
			return nil, err
		}
	}
	v.joinDays(days)
	for _, day := range days {
		if err := v.readDay(day); err != nil {
			return nil, err
		}
	}
	v.endHeads()
	v.endProblems()
	return &v.report, nil
}

// A verifier works on one Report.
type verifier struct {
	record  *Record
	report  Report
	days    map[string]*dayList
	removed map[string]bool   // days
	heads   map[string][]Head // by the names of their files; those that were looked at are taken out
	err     error             // of reading values

	problems map[string]int // by the names of files
}

// A dayList is what files.jsonl of a day says.
type dayList struct {
	begin record.DayBegin
	lines map[string]bool            // hashes
	files map[string]*record.FileEnd // nil of files whose end is not listed
	newer bool                       // a newer toolcell wrote to it
}

// mostProblems is how many are told of one file.
const mostProblems = 20

func (v *verifier) problem(file string, line int, format string, args ...any) {
	if v.problems[file]++; v.problems[file] > mostProblems {
		return
	}
	v.report.Problems = append(v.report.Problems, Finding{file, line, fmt.Sprintf(format, args...)})
}

// endProblems says how many were left out.
func (v *verifier) endProblems() {
	for _, file := range slices.Sorted(maps.Keys(v.problems)) {
		if more := v.problems[file] - mostProblems; more > 0 {
			v.report.Problems = append(v.report.Problems, Finding{file, 0, fmt.Sprintf("and %d more", more)})
		}
	}
}

func (v *verifier) note(file string, line int, format string, args ...any) {
	v.report.Notes = append(v.report.Notes, Finding{file, line, fmt.Sprintf(format, args...)})
}

// readList reads files.jsonl of a day.
func (v *verifier) readList(day string) error {
	list := &dayList{lines: map[string]bool{}, files: map[string]*record.FileEnd{}}
	v.days[day] = list
	name := day + "/" + record.IndexName
	c, err := v.chain(name, func(c *chain, _ record.Header, e record.Entry, _ []byte) {
		list.lines[c.prev] = true
		switch e := e.(type) {
		case *record.DayBegin:
			list.begin = *e
		case *record.FileBegin:
			list.files[e.Name] = nil
		case *record.FileEnd:
			list.files[e.Name] = e
		case *record.DayRemoved:
			v.removed[e.Day] = true
		}
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil // of a day without entries, or each file is found not to be listed
	} else if err != nil {
		return err
	}
	list.newer = c.newer
	return nil
}

// findOthers looks for what is in the place of files or of a day, and is something else. A day is ""
// for the folder of all.
func (v *verifier) findOthers(day string) error {
	all, err := os.ReadDir(v.record.path(day))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range all {
		_, noDay := time.Parse(record.Day, e.Name())
		switch name := path.Join(day, e.Name()); {
		case day == "" && noDay == nil && !e.IsDir():
			v.problem(name, 0, "this is not a folder")
		case day != "" && strings.HasSuffix(e.Name(), ".jsonl") && !e.Type().IsRegular():
			v.problem(name, 0, "this is not a regular file")
		}
	}
	return err
}

// joinDays looks whether each day follows the one before it.
func (v *verifier) joinDays(days []string) {
	for _, day := range days {
		begin := v.days[day].begin
		name := day + "/" + record.IndexName
		switch before := v.days[begin.After]; {
		case begin.After == "" || v.removed[begin.After]:
		case before == nil:
			v.problem(name, 1, "the day before, %s, is missing", begin.After)
		case begin.Head != "" && !before.lines[begin.Head]:
			v.problem(name, 1, "%s/%s is not what it was when this day began", begin.After, record.IndexName)
		}
	}
}

// readDay reads the files of a day, and compares them with the list.
func (v *verifier) readDay(day string) error {
	names, err := v.record.files(day)
	if err == nil {
		err = v.findOthers(day)
	}
	if err != nil {
		return err
	}
	list := v.days[day]
	for _, name := range names {
		if err := v.readFile(name, list); err != nil {
			return err
		}
	}
	for _, base := range slices.Sorted(maps.Keys(list.files)) {
		if name := day + "/" + base; !slices.Contains(names, name) {
			v.problem(name, 0, "it is missing: %s lists it", record.IndexName)
		}
	}
	return nil
}

// readFile reads a file of entries with its values.
func (v *verifier) readFile(name string, list *dayList) error {
	vals, err := openValues(v.record.path(record.ValuesName(name)))
	if err != nil {
		return err
	}
	defer vals.close()
	c, err := v.chain(name, func(c *chain, h record.Header, _ record.Entry, line []byte) {
		v.compareValues(c, vals, h, keptTexts(h, line))
	})
	if err != nil {
		return err
	}
	v.endValues(c, vals)
	if v.err != nil {
		return v.err
	}
	v.report.Files++
	end, listed := list.files[filepath.Base(name)]
	switch {
	case !listed && c.line > 0 && !list.newer && !v.listedNow(name, record.KindFileBegin):
		v.problem(name, 0, "%s does not list it", record.IndexName)
	case end != nil && c.line < end.Lines:
		v.problem(name, 0, "lines are missing: it has %d, and %s lists %d", c.line, record.IndexName, end.Lines)
	case end != nil && c.line > end.Lines:
		v.problem(name, end.Lines+1, "the line was added after the file was complete")
	case end != nil && c.prev != end.Last:
		v.problem(name, c.line, "the line was changed: %s has another hash of it", record.IndexName)
	}
	switch {
	case end == nil && (record.IsShared(name) || v.record.isOpen(name)):
		v.report.Open++
	case end == nil && v.listedNow(name, record.KindFileEnd):
	case end == nil || end.Killed:
		v.report.Killed++
		v.note(name, 0, "its process was killed")
	}
	return nil
}

// listedNow reports whether files.jsonl says something of a file. Processes write while it is verified.
func (v *verifier) listedNow(name string, kind record.Kind) (listed bool) {
	text := fmt.Sprintf(`"kind":%q,"name":%q`, kind, filepath.Base(name))
	err := grep(v.record.path(filepath.Dir(name)+"/"+record.IndexName), []byte(text), func([]byte) bool {
		listed = true
		return false
	})
	return listed && err == nil
}
