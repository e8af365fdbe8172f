package history

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

// written returns heads as they come back from a file of heads.
func written(t *testing.T, r *Record) []Head {
	t.Helper()
	heads, err := r.Heads()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, h := range heads {
		text.WriteString(h.String() + "\n\n")
	}
	back, err := ReadHeads(strings.NewReader(text.String()))
	if err != nil || !slices.Equal(back, heads) || len(heads) < 2 {
		t.Fatal(back, err)
	}
	return back
}

// TestHeadsTellWhatTheRecordAloneCannot: who can write the files can make them anew.
func TestHeadsTellWhatTheRecordAloneCannot(t *testing.T) {
	r, _ := writeRecord(t)
	heads := written(t, r)
	j := record.Open(record.Options{Dir: r.dir, Host: "vm"})
	writeRun(t, j, "cccccccccc")
	must(t, j.Close())
	if report := verify(t, r, heads...); report.Problems != nil {
		t.Errorf("what was written since is a problem: %v", report.Problems)
	}

	forged, name := writeRecord(t)
	if report := verify(t, forged); report.Problems != nil {
		t.Error(report.Problems)
	}
	heads = written(t, forged)
	for i := range heads { // as if the forgery had the names of the record
		heads[i].Hash = strings.Repeat("0", 64)
	}
	want := []string{
		"LIST:3: the line, or one before it, was changed: the heads have another hash of it",
		"NAME:12: the line, or one before it, was changed: the heads have another hash of it",
	}
	if got := texts(name, verify(t, forged, heads...).Problems); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestHeadsOfFilesThatWereCut(t *testing.T) {
	r, name := writeRecord(t)
	heads := written(t, r)
	edit(t, r, listName(name), func(l lines) lines { return l[:2] }) // as of a process that was killed
	edit(t, r, name, func(l lines) lines { return l[:10] })
	must(t, os.Remove(r.path(record.ValuesName(name))))
	if report := verify(t, r); report.Problems != nil {
		t.Errorf("%v", report.Problems)
	}
	want := []string{"LIST: lines are missing: it has 2, and the heads 3", "NAME: lines are missing: it has 10, and the heads 12"}
	if got := texts(name, verify(t, r, heads...).Problems); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}

	must(t, os.RemoveAll(filepath.Dir(r.path(name))))
	want = []string{"LIST: it is missing: the heads have it", "NAME: it is missing: the heads have it"}
	if got := texts(name, verify(t, r, heads...).Problems); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestHeadsThatAreNone(t *testing.T) {
	for _, text := range []string{"x", strings.Repeat("0", 64) + " 0 name", strings.Repeat("0", 64) + " x name", strings.Repeat("0", 63) + " 1 name", "a b c d"} {
		if heads, err := ReadHeads(strings.NewReader("\n" + text + "\n")); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: %v %v", text, heads, err)
		}
	}
}

// TestDaysAreJoined: a whole day cannot be removed unnoticed, unless it is the first one.
func TestDaysAreJoined(t *testing.T) {
	r := Open(t.TempDir())
	c := &clock{noon}
	for n := range 3 {
		c.at = noon.AddDate(0, 0, n)
		j := c.journal(r, "vm")
		writeRun(t, j, "aaaaaaaaaa")
		must(t, j.Close())
	}
	if report := verify(t, r); report.Problems != nil || report.Files != 3 || report.Entries != 18+9 || report.Values != 12 {
		t.Errorf("%+v", report)
	}
	second := filepath.Join(r.dir, "2026-11-28")
	list, err := os.ReadFile(filepath.Join(second, record.IndexName))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(second, record.IndexName), list[:len(list)/3], 0o600))
	got := verify(t, r).Problems
	if n := len(got); n == 0 || got[0].String() != "2026-11-29/files.jsonl:1: 2026-11-28/files.jsonl is not what it was when this day began" {
		t.Errorf("%v", got)
	}
	samePython(t, r)
	must(t, os.RemoveAll(second))
	samePython(t, r)
	got = verify(t, r).Problems
	if len(got) != 1 || got[0].String() != "2026-11-29/files.jsonl:1: the day before, 2026-11-28, is missing" {
		t.Errorf("%v", got)
	}
}
