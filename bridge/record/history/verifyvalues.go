package history

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"io"
	"maps"
	"os"

	"github.com/toolcell/toolcell/bridge/record"
)

// values read a file of values, which is in the order of the entries.
type values struct {
	file  *os.File // nil if there is none
	lines *record.Lines

	next    *record.Value // nil at the end
	line    int           // of next
	missing int           // values that entries have and the file does not
}

func openValues(path string) (*values, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return &values{}, nil
	} else if err != nil {
		return nil, err
	}
	v := &values{file: f, lines: record.NewLines(f)}
	return v, v.advance()
}

// advance reads the next value. Lines that are no values, such as torn ones and those that were
// forgotten, are passed over: what is missing is found by its entry.
func (v *values) advance() error {
	for v.next = nil; v.lines != nil; {
		line, err := v.lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(bytes.TrimSpace(line.Text)) == 0 || line.Long {
			continue
		}
		var next record.Value
		if json.Unmarshal(line.Text, &next) == nil && next.Seq > 0 && next.Salt != "" {
			v.next, v.line = &next, line.Number
			return nil
		}
	}
	return nil
}

func (v *values) close() {
	if v.file != nil {
		v.file.Close()
	}
}

// keptTexts returns the Texts of an entry that are kept, by field.
func keptTexts(h record.Header, line []byte) map[string]*record.Text {
	if !bytes.Contains(line, []byte(`"kept":`)) {
		return nil
	}
	e, err := record.ReadEntry(h, line)
	if err != nil || e == nil { // of a later version
		return anyTexts(line)
	}
	texts := record.Texts(e)
	maps.DeleteFunc(texts, func(_ string, t *record.Text) bool { return t.Kept <= 0 })
	return texts
}

// anyTexts is keptTexts for an entry of any kind.
func anyTexts(line []byte) map[string]*record.Text {
	var members map[string]jsontext.Value
	if json.Unmarshal(line, &members) != nil {
		return nil
	}
	texts := map[string]*record.Text{}
	for field, member := range members {
		var t record.Text
		if member.Kind() == '{' && json.Unmarshal(member, &t) == nil && t.Kept > 0 {
			texts[field] = &t
		}
	}
	return texts
}

// compareValues compares the values of an entry with what is recorded of them.
func (v *verifier) compareValues(name string, vals *values, h record.Header, texts map[string]*record.Text) {
	for vals.next != nil && vals.next.Seq <= h.Seq && v.err == nil {
		v.compareValue(name, vals, h, texts)
		v.err = vals.advance()
	}
	vals.missing += len(texts)
}

// compareValue compares the next value, and removes it from the entry's texts.
func (v *verifier) compareValue(name string, vals *values, h record.Header, texts map[string]*record.Text) {
	next := vals.next
	t := texts[next.Field]
	switch {
	case t == nil || next.Seq != h.Seq || next.Run != h.Run:
		v.problem(record.ValuesName(name), vals.line, noEntry)
	case !next.IsOf(t):
		v.problem(record.ValuesName(name), vals.line, "it is not the value that was recorded")
		delete(texts, next.Field)
	default:
		v.report.Values++
		delete(texts, next.Field)
	}
}

const noEntry = "no entry has this value"

// endValues looks at what is left of a file of values when all entries are read.
func (v *verifier) endValues(name string, vals *values) {
	for vals.next != nil && v.err == nil {
		v.problem(record.ValuesName(name), vals.line, noEntry)
		v.err = vals.advance()
	}
	if vals.missing > 0 {
		v.note(record.ValuesName(name), 0, "%d values are not there: forgotten, or removed", vals.missing)
	}
}
