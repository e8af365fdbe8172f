package history

import (
	"bytes"
	"cmp"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/bridge/record"
)

// An Entry is one of a run, with what is kept of its Texts.
type Entry struct {
	record.Header
	File   string // with the folder of its day
	Body   record.Entry
	Raw    []byte            // the line; of a kind that is not known, all there is
	Values map[string]*Value // by field, such as code
}

// A Value is what is kept of a Text.
type Value struct {
	record.Value
	Wrong bool // it is not what was recorded
}

// An AmbiguousError is of an ID that begins those of several runs.
type AmbiguousError struct {
	ID   string
	Runs []string // some of them
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q begins the IDs of several runs: %s", e.ID, strings.Join(e.Runs, ", "))
}

// ErrNoRun is of an ID that no run on record has.
var ErrNoRun = errors.New("no such run is on record")

// maxAmbiguous bounds the runs of an AmbiguousError.
const maxAmbiguous = 5

// Resolve returns the ID of the run that an ID, or the beginning of one, is of.
func (r *Record) Resolve(id string) (string, error) {
	if id == "" || strings.ContainsAny(id, "\"\\\n") {
		return "", ErrNoRun
	}
	var found []string
	start := []byte(head4 + id)
	err := r.eachFile(func(name string) (bool, error) {
		return true, grep(r.path(name), start, func(line []byte) bool {
			s, ok := scan(line)
			run := string(s.run)
			if ok && strings.HasPrefix(run, id) && !slices.Contains(found, run) && len(found) < maxAmbiguous || run == id {
				found = append(found, run)
			}
			return true
		})
	})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", fmt.Errorf("%q: %w", id, ErrNoRun)
	case slices.Contains(found, id):
		return id, nil
	case len(found) > 1:
		slices.Sort(found)
		return "", &AmbiguousError{ID: id, Runs: found}
	}
	return found[0], nil
}

// eachFile calls f for all files of entries, the newest day first, until it returns false.
func (r *Record) eachFile(f func(name string) (more bool, err error)) error {
	days, err := r.days()
	if err != nil {
		return err
	}
	for _, day := range slices.Backward(days) {
		names, err := r.files(day)
		if err != nil {
			return err
		}
		for _, name := range names {
			if more, err := f(name); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// Show returns all entries of a run, in their order, with the Values that are kept of them. The ID may
// be the beginning of one; the error is then ErrNoRun or an AmbiguousError.
func (r *Record) Show(id string) ([]Entry, error) {
	id, err := r.Resolve(id)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	seen, begun := false, false
	err = r.eachFile(func(name string) (bool, error) {
		some, err := r.entriesOf(name, id)
		entries = append(some, entries...)
		seen = seen || len(some) > 0
		begun = begun || len(some) > 0 && some[0].Kind == record.KindRunStart
		return !begun, err
	})
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	return entries, err
}

// entriesOf returns the entries of a run in one file.
func (r *Record) entriesOf(name, id string) (entries []Entry, err error) {
	err = grep(r.path(name), []byte(head4+id+`"`), func(line []byte) bool {
		if e, ok := newEntry(name, line); !ok {
			r.passOver(name, line)
		} else if e.Run == id {
			entries = append(entries, e)
		}
		return true
	})
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	err = grep(r.path(record.ValuesName(name)), []byte(`{"run":"`+id+`",`), func(line []byte) bool {
		var v record.Value
		if json.Unmarshal(line, &v) == nil && v.Run == id {
			join(entries, v)
		}
		return true
	})
	return entries, err
}

// newEntry decodes a line, which it copies.
func newEntry(name string, line []byte) (Entry, bool) {
	h, err := record.ReadHeader(line)
	if err != nil {
		return Entry{}, false
	}
	e := Entry{Header: h, File: name, Raw: bytes.Clone(line)}
	e.Body, _ = record.ReadEntry(h, line)
	return e, true
}

// join gives a value to its entry.
func join(entries []Entry, v record.Value) {
	at, ok := slices.BinarySearchFunc(entries, v.Seq, func(e Entry, seq uint64) int { return cmp.Compare(e.Seq, seq) })
	if !ok {
		return
	}
	e := &entries[at]
	if t := record.Texts(e.Body)[v.Field]; t != nil && t.Kept > 0 {
		if e.Values == nil {
			e.Values = map[string]*Value{}
		}
		e.Values[v.Field] = &Value{Value: v, Wrong: !v.IsOf(t)}
	}
}

// UnknownCalls returns the calls of a run that have a start and no end: they may have taken effect.
func UnknownCalls(entries []Entry) (calls []*record.CallStart) {
	for _, e := range entries {
		switch e := e.Body.(type) {
		case *record.CallStart:
			calls = append(calls, e)
		case *record.CallEnd:
			calls = slices.DeleteFunc(calls, func(s *record.CallStart) bool { return s.Call == e.Call })
		}
	}
	return calls
}
