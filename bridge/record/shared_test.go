package record_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

func names(paths []string) (out []string) {
	for _, path := range paths {
		out = append(out, filepath.Base(filepath.Dir(path))[8:]+"/"+filepath.Base(path))
	}
	return out
}

// TestCompleteSharedFileStaysAsItIs when the clock goes back to a day whose files are complete.
func TestCompleteSharedFileStaysAsItIs(t *testing.T) {
	dir := t.TempDir()
	at := noon.AddDate(0, 0, -1)
	shared := record.Options{Dir: dir, Host: "vm", Shared: true, Now: func() time.Time { return at }}
	long, begins := record.Open(shared), record.Open(shared)
	run := long.Begin("long", "")
	start := record.RunStart{Code: record.TextOf("1")}
	if err := run.Append(start); err != nil {
		t.Fatal(err)
	}
	closed(t, recordDay(t, record.Options{Dir: dir, Host: "vm"}, 0, 10)) // it notes the end
	at = at.Add(time.Hour)
	call := record.CallStart{Call: 1, Server: "s", Tool: "t", Arguments: record.TextOf("{}")}
	if err := errors.Join(run.Append(call), begins.Begin("other", "").Append(start), run.Append(record.RunEnd{Status: "success", Calls: 1})); err != nil {
		t.Fatal(err)
	}
	closed(t, long)
	closed(t, begins)
	whole(t, dir)
	files := entryFiles(t, dir)
	if got := names(files)[:2]; !slices.Equal(got, []string{"27/vm-exec-2.jsonl", "27/vm-exec.jsonl"}) {
		t.Fatalf("files %q", got)
	}
	if got := kinds(t, files[0]); !slices.Equal(got, []string{"call.start", "run.start", "run.end"}) {
		t.Errorf("%q", got)
	}
	for r, err := range history.Open(dir).Runs(history.Filter{To: noon}) {
		if err != nil || r.ID == "long" && (r.Status != "success" || r.Calls != 1 || r.Lost != 0 || filepath.Base(r.File) != "vm-exec.jsonl") {
			t.Errorf("%+v %v", r, err)
		}
	}
}

// TestFileOfANewerToolcellStaysAsItIs: what it wrote last is not taken for a line that is torn.
func TestFileOfANewerToolcellStaysAsItIs(t *testing.T) {
	dir := t.TempDir()
	recordOne := func() error {
		j := record.Open(record.Options{Dir: dir, Host: "vm", Shared: true})
		return errors.Join(j.Begin("aaaaaaaaaa", "").Append(ok), j.Close())
	}
	if err := recordOne(); err != nil {
		t.Fatal(err)
	}
	path := entryFiles(t, dir)[0]
	data, _ := os.ReadFile(path)
	for _, end := range []string{`{"v":2,"seq":{"of":"another form"}}` + "\n", `{"v":2}`} {
		newer := slices.Concat(data, []byte(end))
		if err := os.WriteFile(path, newer, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := recordOne(); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); !bytes.Equal(got, newer) {
			t.Errorf("%s", got)
		}
	}
	if got := kinds(t, filepath.Join(filepath.Dir(path), "vm-exec-2.jsonl")); !slices.Equal(got, []string{"call.end", "call.end"}) {
		t.Errorf("%q", got)
	}
	list := filepath.Join(filepath.Dir(path), record.IndexName)
	data, _ = os.ReadFile(list)
	newer := slices.Concat(data, []byte(`{"v":3}`+"\n"))
	if err := os.WriteFile(list, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	j := record.Open(record.Options{Dir: dir, Host: "other"})
	if err := j.Begin("bbbbbbbbbb", "").Append(ok); err == nil || !strings.Contains(err.Error(), "files.jsonl: written by a newer toolcell (record version 3)") {
		t.Error(err)
	}
	closed(t, j)
}

// TestOnlyFilesAreWrittenTo: a link, a pipe or a folder in the place of one is an error, and no value
// is written without its entry.
func TestOnlyFilesAreWrittenTo(t *testing.T) {
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	for what, put := range map[string]func(path string) error{
		"link":        func(path string) error { return os.Symlink(elsewhere, path) },
		"link to nil": func(path string) error { return os.Symlink(os.DevNull, path) },
		"pipe":        func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder":      func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, name := range []string{"vm-exec.jsonl", "vm-exec.values.jsonl", record.IndexName, ""} {
			if name == "" && what != "link" {
				continue // in which no folder can be made anyway
			}
			t.Run(what+" for "+name, func(t *testing.T) {
				dir := t.TempDir()
				day := filepath.Join(dir, noon.Format(record.Day))
				if name == "" {
					if err := errors.Join(os.Mkdir(elsewhere, 0o700), os.Symlink(elsewhere, day)); err != nil {
						t.Fatal(err)
					}
				} else if err := errors.Join(os.Mkdir(day, 0o700), put(filepath.Join(day, name))); err != nil {
					t.Fatal(err)
				}
				j := record.Open(record.Options{Dir: dir, Host: "vm", Shared: true, Now: func() time.Time { return noon }})
				for range 2 {
					if err := j.Begin("aaaaaaaaaa", "").Append(record.RunStart{Code: record.TextOf("1")}); err == nil {
						t.Error("it was written")
					}
				}
				closed(t, j)
				if _, err := os.Lstat(filepath.Join(day, "vm-exec.values.jsonl")); err == nil && name != "vm-exec.values.jsonl" {
					t.Error("there are values without entries")
				}
				if all, _ := os.ReadDir(elsewhere); len(all) > 0 {
					t.Errorf("written elsewhere: %v", all)
				}
				_ = os.RemoveAll(elsewhere)
			})
		}
	}
}
