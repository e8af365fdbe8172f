package history

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
			"NAME:5: the line is no entry, and the next one does not say that it is torn",
			"NAME:6: entries are missing or moved: seq 6 follows 4",
		},
	},
	"a line removed": {
		inEntries(func(l lines) lines { return slices.Delete(l, 4, 5) }),
		[]string{"NAME:5: entries are missing or moved: seq 6 follows 4", "NAME: it was cut: it has 11 lines, and files.jsonl lists 12"},
	},
	"the first line removed": {
		inEntries(func(l lines) lines { return l[1:] }),
		[]string{"NAME:1: entries are missing or moved: seq 2 follows 0", "VALUES:1: no entry has this value", "NAME: it was cut: it has 11 lines, and files.jsonl lists 12"},
	},
	"cut": {
		inEntries(func(l lines) lines { return l[:10] }),
		[]string{"VALUES:8: no entry has this value", "NAME: it was cut: it has 10 lines, and files.jsonl lists 12"},
	},
	"cut in a line": {
		func(t *testing.T, r *Record, name string) {
			info, err := os.Stat(r.path(name))
			if err != nil || os.Truncate(r.path(name), info.Size()-20) != nil {
				t.Fatal(err)
			}
		},
		[]string{"VALUES:8: no entry has this value", "NAME: it was cut: it has 11 lines, and files.jsonl lists 12"},
	},
	"a line added": {
		inEntries(func(l lines) lines { return append(l, []byte("{}\n")) }),
		[]string{"NAME:13: the line is no entry, and the next one does not say that it is torn", "NAME:13: the line was added after the file was complete"},
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
