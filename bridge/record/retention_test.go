package record_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

var journals atomic.Int64

// recordDay writes an entry of so many bytes on a day, counted from noon's.
func recordDay(t *testing.T, o record.Options, day, size int) *record.Journal {
	t.Helper()
	begun := noon.AddDate(0, 0, day).Add(time.Duration(journals.Add(1))) // which its file is named for
	o.Now = func() time.Time { return begun }
	o.MaxValue = 1 << 20
	j := record.Open(o)
	if err := j.Begin("aaaaaaaaaa", "").Append(record.RunStart{Code: record.TextOf(strings.Repeat("x", size))}); err != nil {
		t.Fatal(err)
	}
	return j
}

func closed(t *testing.T, j *record.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// daysOf returns the days that have a folder, by their numbers in the month.
func daysOf(t *testing.T, dir string) (days []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		days = append(days, strings.TrimPrefix(e.Name(), "2026-11-"))
	}
	return days
}

func TestOldDaysAreRemoved(t *testing.T) {
	o := record.Options{Dir: t.TempDir(), Host: "vm", KeepDays: 3}
	for day := -5; day <= 0; day++ {
		closed(t, recordDay(t, o, day, 10))
	}
	if got := daysOf(t, o.Dir); !slices.Equal(got, []string{"26", "27", "28"}) {
		t.Errorf("days %q", got)
	}
	if notes := whole(t, o.Dir); notes != nil {
		t.Errorf("notes %q", notes)
	}
	list, err := os.ReadFile(filepath.Join(o.Dir, "2026-11-28", record.IndexName))
	if err != nil || !bytes.Contains(list, []byte(`"kind":"day.removed","day":"2026-11-25","head":"`)) {
		t.Errorf("%s %v", list, err)
	}
}

func TestOldestDaysGoForTheirRoom(t *testing.T) {
	o := record.Options{Dir: t.TempDir(), Host: "vm", MaxBytes: 250_000}
	for day := -4; day <= -1; day++ {
		closed(t, recordDay(t, o, day, 100_000))
	}
	closed(t, recordDay(t, o, 0, 300_000)) // today stays, whatever it takes
	if got := daysOf(t, o.Dir); !slices.Equal(got, []string{"28"}) {
		t.Errorf("days %q", got)
	}
	whole(t, o.Dir)
}

func TestDaysWithAnOpenFileStay(t *testing.T) {
	o := record.Options{Dir: t.TempDir(), Host: "vm", KeepDays: 2}
	open := recordDay(t, o, -5, 10)
	closed(t, recordDay(t, o, -4, 10))
	closed(t, recordDay(t, o, 0, 10))
	if got := daysOf(t, o.Dir); !slices.Equal(got, []string{"23", "28"}) {
		t.Errorf("days %q", got)
	}
	whole(t, o.Dir)
	closed(t, open)
	closed(t, recordDay(t, o, 0, 10))
	if got := daysOf(t, o.Dir); !slices.Equal(got, []string{"28"}) {
		t.Errorf("days %q", got)
	}
	whole(t, o.Dir)
}

// TestEndsAreNotedOfFilesWhoseProcessHasGone, the day after, so that a cut is noticed from then on.
func TestEndsAreNotedOfFilesWhoseProcessHasGone(t *testing.T) {
	o := record.Options{Dir: t.TempDir(), Host: "vm"}
	shared := o
	shared.Shared = true
	killed := recordDay(t, o, -1, 10)
	closed(t, recordDay(t, shared, -1, 10))
	closed(t, recordDay(t, o, 0, 10))
	paths := entryFiles(t, o.Dir)[:2]
	list := filepath.Join(o.Dir, "2026-11-27", record.IndexName)
	if got := kinds(t, list); !slices.Equal(got, []string{"day.begin", "file.begin", "file.begin", "file.end"}) {
		t.Errorf("while a process writes: %q", got)
	}
	killed.Kill()
	closed(t, recordDay(t, o, 0, 10))
	if got := kinds(t, list); !slices.Equal(got, []string{"day.begin", "file.begin", "file.begin", "file.end", "file.end"}) {
		t.Errorf("after it was killed: %q", got)
	}
	if notes := whole(t, o.Dir); !slices.Equal(notes, []string{"its process was killed"}) {
		t.Errorf("notes %q", notes)
	}
	if data, _ := os.ReadFile(list); bytes.Count(data, []byte(`"killed":true`)) != 1 {
		t.Errorf("%s", data)
	}
	for _, path := range paths {
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	if got := problems(t, o.Dir); len(got) != 4 || !strings.Contains(got[1], "lines are missing: it has 0, and files.jsonl lists 1") {
		t.Errorf("%q", got)
	}
}
