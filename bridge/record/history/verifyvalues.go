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

// values read a file of values, which is mostly in the order of the entries.
type values struct {
	file  *os.File // nil if there is none
	lines *record.Lines

	next *record.Value // nil at the end
	line int           // of next

	// Texts of entries that were read, whose values were not found yet: these may stand later.
	pending map[valueKey]*record.Text
	missing int // the same that are too many
}

// A valueKey says of which Text a value is.
type valueKey struct {
	seq        uint64
	run, field string
}

// maxPending bounds the texts that are kept until their values are found.
const maxPending = 1 << 16

func openValues(path string) (*values, error) {
	f, err := openFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return &values{}, nil // or what is in its place is no file
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
func (v *verifier) compareValues(c *chain, vals *values, h record.Header, texts map[string]*record.Text) {
	for field, t := range texts {
		if len(vals.pending) == maxPending {
			vals.missing++
			continue
		}
		if vals.pending == nil {
			vals.pending = map[valueKey]*record.Text{}
		}
		vals.pending[valueKey{h.Seq, h.Run, field}] = t
	}
	for vals.next != nil && vals.next.Seq <= h.Seq && v.err == nil {
		v.compareValue(c, vals)
		v.err = vals.advance()
	}
}

// compareValue compares the next value with the Text that it is of.
func (v *verifier) compareValue(c *chain, vals *values) {
	key := valueKey{vals.next.Seq, vals.next.Run, vals.next.Field}
	t := vals.pending[key]
	delete(vals.pending, key)
	switch name := record.ValuesName(c.name); {
	case t == nil && c.newer: // it may be of an entry that cannot be read
	case t == nil && vals.missing > 0:
		v.problem(name, vals.line, "no entry has this value, or it is out of place")
	case t == nil:
		v.problem(name, vals.line, "no entry has this value")
	case !vals.next.IsOf(t):
		v.problem(name, vals.line, "it is not the value that was recorded")
	default:
		v.report.Values++
	}
}

// endValues looks at what is left of a file of values when all entries are read.
func (v *verifier) endValues(c *chain, vals *values) {
	for vals.next != nil && v.err == nil {
		v.compareValue(c, vals)
		v.err = vals.advance()
	}
	if missing := vals.missing + len(vals.pending); missing > 0 {
		v.note(record.ValuesName(c.name), 0, "%s not written, forgotten or removed", counted(missing, "value was", "values were"))
	}
}
