package record

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// folder is the folder of all records: it has one for each day.
type folder string

// IndexName is the name of the file of each day that lists the others.
const IndexName = "files.jsonl"

// The kinds of entries in files.jsonl.
const (
	KindDayBegin   Kind = "day.begin"
	KindFileBegin  Kind = "file.begin"
	KindFileEnd    Kind = "file.end"
	KindDayRemoved Kind = "day.removed"
	KindForgotten  Kind = "forgotten"
)

// DayBegin is the first entry of files.jsonl. It joins the day to the one before.
type DayBegin struct {
	After string `json:"after,omitzero"` // the day before that has records; empty if none has
	Head  string `json:"head,omitzero"`  // SHA-256 of the last line of its files.jsonl at the time
}

// FileBegin says that there will be a file with entries. It is written before the first of them.
type FileBegin struct {
	Name string `json:"name"`
}

// FileEnd says that a file is complete.
type FileEnd struct {
	Name   string `json:"name"`
	First  string `json:"first"`
	Last   string `json:"last"` // SHA-256 of its last line
	Lines  int    `json:"lines"`
	Killed bool   `json:"killed,omitzero"` // the process that wrote it did not say so itself
}

// DayRemoved says that a whole day was removed because of its age, or for its room.
type DayRemoved struct {
	Day   string `json:"day"`
	Head  string `json:"head,omitzero"` // SHA-256 of the last line of its files.jsonl
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
}

// Forgotten says that the values of a run were removed.
type Forgotten struct {
	Forgot string `json:"forgot"` // the run's ID
	Values int    `json:"values"` // how many there were
}

// Kind returns KindDayBegin.
func (DayBegin) Kind() Kind { return KindDayBegin }

// Kind returns KindFileBegin.
func (FileBegin) Kind() Kind { return KindFileBegin }

// Kind returns KindFileEnd.
func (FileEnd) Kind() Kind { return KindFileEnd }

// Kind returns KindDayRemoved.
func (DayRemoved) Kind() Kind { return KindDayRemoved }

// Kind returns KindForgotten.
func (Forgotten) Kind() Kind { return KindForgotten }

func (e DayBegin) ready(*draft) any   { return &e }
func (e FileBegin) ready(*draft) any  { return &e }
func (e FileEnd) ready(*draft) any    { return &e }
func (e DayRemoved) ready(*draft) any { return &e }
func (e Forgotten) ready(*draft) any  { return &e }

// note appends entries to files.jsonl of a day.
func (dir folder) note(day string, now time.Time, all ...Entry) (err error) {
	name := filepath.Join(day, IndexName)
	f, release, err := dir.lock(name)
	if err != nil {
		return err
	}
	defer release()
	c, err := goOn(f, name)
	if err != nil {
		return err
	}
	switch {
	case c.torn() > 0:
		err = c.mend(Torn{}, now)
	case c.seq == 0:
		begin, err := dir.dayBegin(day)
		if err != nil {
			return err
		}
		all = slices.Insert(all, 0, Entry(begin))
	}
	for _, e := range all {
		body, encodeErr := encode(e, &draft{})
		if err = errors.Join(err, encodeErr); err == nil {
			err = c.append(Header{Time: now, Kind: e.Kind()}, body)
		}
	}
	return err
}

// dayBegin returns the first entry of a day.
func (dir folder) dayBegin(day string) (DayBegin, error) {
	days, err := dir.days()
	if err != nil {
		return DayBegin{}, err
	}
	for _, before := range slices.Backward(days) {
		if before < day {
			head, err := dir.head(before)
			return DayBegin{After: before, Head: head}, err
		}
	}
	return DayBegin{}, nil
}

// head returns the hash of the last line of files.jsonl of a day, "" if there is none.
func (dir folder) head(day string) (string, error) {
	name := filepath.Join(day, IndexName)
	f, err := OpenFile(filepath.Join(string(dir), name), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	defer f.Close()
	c, err := goOn(f, name)
	if err != nil || c.seq == 0 {
		return "", err
	}
	return c.prev.String(), nil
}

// days returns the days that have a folder, the oldest first.
func (dir folder) days() (days []string, err error) {
	entries, err := os.ReadDir(string(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if _, err := time.Parse(Day, e.Name()); err == nil && e.IsDir() {
			days = append(days, e.Name())
		}
	}
	return days, err
}
