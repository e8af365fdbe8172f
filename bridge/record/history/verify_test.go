package history

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolcell/toolcell/bridge/record"
)

type lines = [][]byte

// tamperings are ways to change a finished record, and what Verify says of them.
var tamperings = map[string]struct {
	change   func(t *testing.T, r *Record, name string)
	problems []string
}{
	"whole": {func(*testing.T, *Record, string) {}, nil},
	"a bit changed": {
		inEntries(func(l lines) lines { l[4] = bytes.Replace(l[4], []byte("github"), []byte("gitHub"), 1); return l }),
		[]string{"NAME:5: the line was changed: line 6 has another hash of it"},
	},
	"a bit of the last line changed": {
		inEntries(func(l lines) lines {
			l[11] = bytes.Replace(l[11], []byte("success"), []byte("succesS"), 1)
			return l
		}),
		[]string{"NAME:12: the line was changed: files.jsonl has another hash of it"},
	},
	"a bit of JSON changed": {
		inEntries(func(l lines) lines { l[4] = bytes.Replace(l[4], []byte(`":`), []byte(`"!`), 1); return l }),
		[]string{
			"NAME:5: this line is not a valid entry",
			"NAME:6: entries are missing or moved: seq 6 follows 4",
		},
	},
	"a line removed": {
		inEntries(func(l lines) lines { return slices.Delete(l, 4, 5) }),
		[]string{"NAME:5: entries are missing or moved: seq 6 follows 4", "NAME: lines are missing: it has 11, and files.jsonl lists 12"},
	},
	"the first line removed": {
		inEntries(func(l lines) lines { return l[1:] }),
		[]string{"NAME:1: entries are missing or moved: seq 2 follows 0", "VALUES:1: no entry has this value", "NAME: lines are missing: it has 11, and files.jsonl lists 12"},
	},
	"cut": {
		inEntries(func(l lines) lines { return l[:10] }),
		[]string{"VALUES:8: no entry has this value", "NAME: lines are missing: it has 10, and files.jsonl lists 12"},
	},
	"cut in a line": {
		func(t *testing.T, r *Record, name string) {
			info, err := os.Stat(r.path(name))
			if err != nil || os.Truncate(r.path(name), info.Size()-20) != nil {
				t.Fatal(err)
			}
		},
		[]string{"VALUES:8: no entry has this value", "NAME: lines are missing: it has 11, and files.jsonl lists 12"},
	},
	"a line added": {
		inEntries(func(l lines) lines { return append(l, []byte("{}\n")) }),
		[]string{"NAME:13: this line is not a valid entry", "NAME:13: the line was added after the file was complete"},
	},
	"lines swapped": {
		inEntries(func(l lines) lines { l[4], l[5] = l[5], l[4]; return l }),
		[]string{
			"NAME:5: entries are missing or moved: seq 6 follows 4",
			"NAME:6: entries are missing or moved: seq 5 follows 6",
			"NAME:7: entries are missing or moved: seq 7 follows 5",
		},
	},
	"a file missing": {
		func(t *testing.T, r *Record, name string) {
			if err := os.Remove(r.path(name)); err != nil {
				t.Fatal(err)
			}
		},
		[]string{"NAME: it is missing: files.jsonl lists it"},
	},
	"a value changed": {
		inValues(func(l lines) lines { l[0] = bytes.Replace(l[0], []byte("print"), []byte("Print"), 1); return l }),
		[]string{"VALUES:1: it is not the value that was recorded"},
	},
	"a value of another run": {
		inValues(func(l lines) lines {
			l[0] = bytes.Replace(l[0], []byte("aaaaaaaaaa"), []byte("bbbbbbbbbb"), 1)
			return l
		}),
		[]string{"VALUES:1: no entry has this value"},
	},
	"a value added": {
		inValues(func(l lines) lines { return append(l, l[0]) }),
		[]string{"VALUES:9: no entry has this value"},
	},
	"values swapped": {
		inValues(func(l lines) lines { l[0], l[5] = l[5], l[0]; return l }), nil, // each has its entry
	},
	"a pipe in the place of values": {
		inPlace(record.ValuesName, func(path string) error { return syscall.Mkfifo(path, 0o600) }),
		[]string{"VALUES: this is not a regular file"},
	},
	"a folder in the place of entries": {
		inPlace(itself, func(path string) error { return os.Mkdir(path, 0o700) }),
		[]string{"NAME: this is not a regular file", "NAME: it is missing: files.jsonl lists it"},
	},
	"a link in the place of entries": {
		func(t *testing.T, r *Record, name string) {
			must(t, os.Rename(r.path(name), r.dir+"/elsewhere"))
			must(t, os.Symlink(r.dir+"/elsewhere", r.path(name)))
		},
		[]string{"NAME: this is not a regular file", "NAME: it is missing: files.jsonl lists it"},
	},
	"a link in the place of the list": {
		inPlace(listName, func(path string) error { return os.Symlink(os.DevNull, path) }),
		[]string{"LIST: this is not a regular file", "NAME: files.jsonl does not list it"},
	},
	"a link in the place of a day": {
		func(t *testing.T, r *Record, name string) {
			must(t, os.Rename(r.path(filepath.Dir(name)), r.dir+"/elsewhere"))
			must(t, os.Symlink(r.dir+"/elsewhere", r.path(filepath.Dir(name))))
		},
		[]string{"DAY: this is not a folder"},
	},
	"a line of a newer version added": {
		inEntries(func(l lines) lines { return append(l, []byte(`{"v":2}`+"\n")) }),
		[]string{"NAME:13: the line was added after the file was complete"},
	},
	"a line said to be of a newer version": {
		inEntries(func(l lines) lines {
			l[4] = bytes.Replace(l[4], []byte(`"v":1`), []byte(`"v":2`), 1)
			return l
		}),
		[]string{"NAME:5: the line was changed: line 6 has another hash of it"},
	},
	"values removed": { // as Forget does
		func(t *testing.T, r *Record, name string) {
			if err := os.Remove(r.path(record.ValuesName(name))); err != nil {
				t.Fatal(err)
			}
		}, nil,
	},
	"the list changed": {
		inList(func(l lines) lines { l[1] = bytes.Replace(l[1], []byte("vm-"), []byte("wm-"), 1); return l }),
		[]string{"LIST:2: the line was changed: line 3 has another hash of it", "DAY/wm-BASE: it is missing: files.jsonl lists it"},
	},
	"a line of the list removed": {
		inList(func(l lines) lines { return slices.Delete(l, 1, 2) }),
		[]string{"LIST:2: entries are missing or moved: seq 3 follows 1"},
	},
	"the list removed": {
		func(t *testing.T, r *Record, name string) {
			if err := os.Remove(r.path(listName(name))); err != nil {
				t.Fatal(err)
			}
		},
		[]string{"NAME: files.jsonl does not list it"},
	},
}

func inEntries(change func(lines) lines) func(*testing.T, *Record, string) {
	return func(t *testing.T, r *Record, name string) { edit(t, r, name, change) }
}

func inValues(change func(lines) lines) func(*testing.T, *Record, string) {
	return func(t *testing.T, r *Record, name string) { edit(t, r, record.ValuesName(name), change) }
}

func inList(change func(lines) lines) func(*testing.T, *Record, string) {
	return func(t *testing.T, r *Record, name string) { edit(t, r, listName(name), change) }
}

func itself(name string) string { return name }

// inPlace puts something in the place of a file.
func inPlace(of func(name string) string, put func(path string) error) func(*testing.T, *Record, string) {
	return func(t *testing.T, r *Record, name string) {
		must(t, os.Remove(r.path(of(name))))
		must(t, put(r.path(of(name))))
	}
}

func listName(name string) string { return filepath.Dir(name) + "/" + record.IndexName }

func TestVerifyFindsEachTampering(t *testing.T) {
	for what, row := range tamperings {
		t.Run(what, func(t *testing.T) {
			r, name := writeRecord(t)
			row.change(t, r, name)
			if got := texts(name, verify(t, r).Problems); !slices.Equal(got, row.problems) {
				t.Errorf("problems:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(row.problems, "\n"))
			}
			samePython(t, r)
		})
	}
}

// TestProblemsOfAFileAreBounded, and counted.
func TestProblemsOfAFileAreBounded(t *testing.T) {
	r, name := writeRecord(t)
	edit(t, r, name, func(l lines) lines { return append(l, slices.Repeat(lines{[]byte("{}\n")}, 30)...) })
	problems := verify(t, r).Problems
	if n := len(problems); n != mostProblems+1 || problems[n-1].Text != "and 11 more" {
		t.Errorf("%d problems, %v", n, problems[n-1])
	}
}

// TestLinesOfANewerVersion are no problem, and each file is told of once.
func TestLinesOfANewerVersion(t *testing.T) {
	r := Open(t.TempDir())
	j := record.Open(record.Options{Dir: r.dir, Host: "vm"})
	writeRun(t, j, "aaaaaaaaaa")
	name := onlyFile(t, r)
	for of, line := range map[string]string{
		name:                    `{"v":2,"seq":"other form","run":"aaaaaaaaaa"}`,
		listName(name):          `{"v":3}`,
		record.ValuesName(name): `{"run":"cccccccccc","seq":8,"field":"code","salt":"00","value":"x"}`,
	} {
		edit(t, r, of, func(l lines) lines { return append(l, []byte(line+"\n"), []byte(line+"\n")) })
	}
	must(t, os.WriteFile(r.path(filepath.Dir(name)+"/other-1-0.jsonl"), []byte(`{"v":2}`+"\n"), 0o600)) // listed in a line of a newer form
	report := verify(t, r)
	notes := texts(name, report.Notes)
	want := []string{"LIST:3: written by a newer toolcell (record version 3)", "DAY/other-1-0.jsonl:1: written by a newer toolcell (record version 2)", "DAY/other-1-0.jsonl: its process was killed", "NAME:7: written by a newer toolcell (record version 2)"}
	if report.Problems != nil || !slices.Equal(notes, want) {
		t.Errorf("%v\n%q", report.Problems, notes)
	}
	samePython(t, r)
	for what, read := range map[string]func(r *Record) error{
		"list":  func(r *Record) error { collect(t, r, Filter{}); return nil },
		"stats": func(r *Record) error { _, err := r.Stats(Filter{}); return err },
		"export": func(r *Record) error {
			for range r.Entries(Filter{}) {
			}
			return nil
		},
	} {
		reader := Open(r.dir)
		must(t, read(reader))
		if got := texts(name, reader.Newer()); !slices.Equal(got, []string{"DAY/other-1-0.jsonl: written by a newer toolcell (record version 2)", "NAME: written by a newer toolcell (record version 2)"}) {
			t.Errorf("%s: %q", what, got)
		}
	}
	if err := j.Close(); err == nil {
		t.Error("the end of a file was listed after lines that may say anything")
	}
}

// TestVerifyTellsWhatIsLost of each file.
func TestVerifyTellsWhatIsLost(t *testing.T) {
	r := Open(t.TempDir())
	shared := record.Options{Dir: r.dir, Host: "vm", Shared: true}
	j := record.Open(shared)
	writeRun(t, j, "aaaaaaaaaa")
	must(t, j.Append(record.Torn{Lost: 3}))
	must(t, j.Close())
	name := onlyFile(t, r)
	edit(t, r, name, func(l lines) lines { return append(l, []byte(`{"v":1,`)) })
	j = record.Open(shared)
	writeRun(t, j, "bbbbbbbbbb")
	must(t, j.Close())
	must(t, os.Remove(r.path(record.ValuesName(name))))
	report := verify(t, r)
	if notes := texts(name, report.Notes); report.Problems != nil || !slices.Equal(notes, []string{"NAME: 4 entries were not written, 1 line is torn", "VALUES: 8 values were not written, forgotten or removed"}) {
		t.Errorf("%v\n%q", report.Problems, notes)
	}
}
