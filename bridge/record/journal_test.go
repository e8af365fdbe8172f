package record_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/record"
	"github.com/toolcell/toolcell/bridge/record/history"
)

var ok = record.CallEnd{Call: 1, Server: "github", Tool: "list_issues", Outcome: record.OK}

// entryFiles returns the paths of the files of entries, the oldest first.
func entryFiles(t *testing.T, dir string) (paths []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(path string) bool { return !record.IsEntries(filepath.Base(path)) })
}

// kinds returns the kinds of the entries of a file, "-" for a line that is none.
func kinds(t *testing.T, path string) (out []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		h, err := record.ReadHeader(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			h.Kind = "-"
		}
		out = append(out, string(h.Kind))
	}
	return out
}

// problems returns those that Verify finds.
func problems(t *testing.T, dir string) (all []string) {
	t.Helper()
	report, err := history.Open(dir).Verify(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		all = append(all, p.String())
	}
	return all
}

// whole fails the test if the record has a problem, and returns the notes.
func whole(t *testing.T, dir string) (notes []string) {
	t.Helper()
	report, err := history.Open(dir).Verify(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Error(p)
	}
	for _, n := range report.Notes {
		notes = append(notes, n.Text)
	}
	return notes
}

func TestEntriesAreForTheirUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "records")
	j := record.Open(record.Options{Dir: dir})
	run := j.Begin("aaaaaaaaaa", "")
	if err := errors.Join(run.Append(record.RunStart{Code: record.TextOf("1")}), j.Close()); err != nil {
		t.Fatal(err)
	}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestHeaderOfALine(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 11, 28, 9, 30, 0, 120, time.FixedZone("", 3600))
	j := record.Open(record.Options{Dir: dir, Host: "Ada's Laptop.local", Now: func() time.Time { return at }})
	run := j.Begin(`a"b`, "call 7")
	if err := errors.Join(run.Append(ok), run.Append(ok), j.Close()); err != nil {
		t.Fatal(err)
	}
	path := entryFiles(t, dir)[0]
	if name, _ := filepath.Rel(dir, path); !strings.HasPrefix(name, "2026-11-28/ada_s_laptop-") || !strings.HasSuffix(name, "-083000.000000120.jsonl") {
		t.Errorf("name %s", name)
	}
	data, _ := os.ReadFile(path)
	lines := bytes.Split(data, []byte("\n"))
	name, _ := filepath.Rel(dir, path)
	want := `{"v":1,"seq":1,"prev":"` + record.FirstPrev(name).String() + `","time":"2026-11-28T08:30:00.000000120Z","kind":"call.end","run":"a_b","parent":"call_7","call":1,"server":"github","tool":"list_issues","outcome":"ok"}`
	if string(lines[0]) != want {
		t.Errorf("line\n%s\nwant\n%s", lines[0], want)
	}
	h, err := record.ReadHeader(lines[1])
	if err != nil || h.Seq != 2 || h.Prev != record.HashOf(lines[0]).String() || !h.Time.Equal(at) {
		t.Errorf("second line: %+v %v", h, err)
	}
}

// writes counts how often files are written to.
type writes struct {
	mu  sync.Mutex
	all [][]byte
}

func (w *writes) wrap(to io.Writer) io.Writer { return writer{w, to} }

type writer struct {
	w  *writes
	to io.Writer
}

func (w writer) Write(p []byte) (int, error) {
	w.w.mu.Lock()
	defer w.w.mu.Unlock()
	w.w.all = append(w.w.all, bytes.Clone(p))
	return w.to.Write(p)
}

func TestEachEntryIsOneWrite(t *testing.T) {
	var w writes
	j := record.Open(record.Options{Dir: t.TempDir()}.WithFiles(w.wrap))
	run := j.Begin("aaaaaaaaaa", "")
	err := run.Append(record.CallStart{Call: 1, Server: "github", Tool: "t", Arguments: record.TextOf("{}")})
	if err = errors.Join(err, run.Append(ok), j.Close()); err != nil {
		t.Fatal(err)
	}
	if len(w.all) != 3 { // two entries and a value
		t.Errorf("%d writes: %q", len(w.all), w.all)
	}
	for _, p := range w.all {
		if bytes.Count(p, []byte("\n")) != 1 || p[len(p)-1] != '\n' {
			t.Errorf("a write of %q", p)
		}
	}
}

func TestConcurrentEntriesFormOneChain(t *testing.T) {
	dir := t.TempDir()
	j := record.Open(record.Options{Dir: dir})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			run := j.Begin("aaaaaaaaaa", "")
			for range 50 {
				if err := run.Append(record.CallEnd{Call: run.NextCall(), Server: "s", Outcome: record.OK, Error: record.TextOf("e")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if notes := whole(t, dir); notes != nil {
		t.Errorf("notes %q", notes)
	}
	if got := kinds(t, entryFiles(t, dir)[0]); len(got) != 400 {
		t.Errorf("%d entries", len(got))
	}
}

func TestDayChangeBeginsANewFile(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	at := time.Date(2026, 11, 28, 23, 59, 59, 0, time.UTC)
	j := record.Open(record.Options{Dir: dir, Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return at }})
	run := j.Begin("aaaaaaaaaa", "")
	start := record.RunStart{Code: record.TextOf("1")}
	for _, step := range []time.Duration{0, 2 * time.Second, -3 * time.Second} { // the clock goes back in the end
		mu.Lock()
		at = at.Add(step)
		mu.Unlock()
		if err := run.Append(start); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	whole(t, dir)
	files := entryFiles(t, dir)
	if len(files) != 2 || filepath.Base(filepath.Dir(files[1])) != "2026-11-29" || len(kinds(t, files[0])) != 1 || len(kinds(t, files[1])) != 2 {
		t.Errorf("files %q", files)
	}
	list, err := os.ReadFile(filepath.Join(dir, "2026-11-29", record.IndexName))
	if err != nil || !bytes.Contains(list, []byte(`"kind":"day.begin","after":"2026-11-28"`)) {
		t.Errorf("%s %v", list, err)
	}
}

func TestCommandsShareAFile(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { // each has its own lock, as a process has
			j := record.Open(record.Options{Dir: dir, Host: "vm", Shared: true})
			run := j.Begin("aaaaaaaaaa", "")
			for range 10 {
				if err := run.Append(record.CallStart{Server: "s", Arguments: record.TextOf("{}")}); err != nil {
					t.Error(err)
				}
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if notes := whole(t, dir); notes != nil {
		t.Errorf("notes %q", notes)
	}
	files := entryFiles(t, dir)
	if len(files) != 1 || filepath.Base(files[0]) != "vm-exec.jsonl" || len(kinds(t, files[0])) != 40 {
		t.Errorf("files %q", files)
	}
}

// A disk is what files are written to: it has so many bytes left.
type disk struct {
	mu   sync.Mutex
	left int
}

func (d *disk) wrap(to io.Writer) io.Writer { return diskFile{d, to} }

func (d *disk) room(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = n
}

type diskFile struct {
	d  *disk
	to io.Writer
}

func (f diskFile) Write(p []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	n, err := f.to.Write(p[:min(len(p), f.d.left)])
	f.d.left -= n
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func TestFullDisk(t *testing.T) {
	const plenty = 1 << 20
	// How many bytes of an entry there is room for; from the end if it is not positive, where there
	// is the line feed.
	for _, room := range []int{-1 << 20, 1, 50, 130, -3, -2, -1, 0} {
		dir := t.TempDir()
		d := &disk{left: plenty}
		j := record.Open(record.Options{Dir: dir}.WithFiles(d.wrap))
		run := j.Begin("aaaaaaaaaa", "")
		if err := run.Append(ok); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(entryFiles(t, dir)[0])
		if err != nil {
			t.Fatal(err)
		}
		left, size := room, int(info.Size())
		if room <= 0 {
			left = max(0, left+size)
		}
		d.room(left)
		first, second := run.Append(ok), run.Append(ok)
		if !errors.Is(second, syscall.ENOSPC) || (first == nil) != (left >= size-1) {
			t.Errorf("%d bytes left: %v, %v", left, first, second)
		}
		lost := 2
		if first == nil {
			lost = 1
		}
		if gap := j.Incomplete(); gap.Entries != lost || !errors.Is(gap.Err, syscall.ENOSPC) || run.Lost() != lost {
			t.Errorf("%d bytes left: %+v", left, gap)
		}
		if err := j.Ready(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes left: ready: %v", left, err)
		}
		d.room(plenty)
		if err := errors.Join(j.Ready(), run.Append(ok), j.Close()); err != nil {
			t.Error(err)
		}
		whole(t, dir)
		data, _ := os.ReadFile(entryFiles(t, dir)[0])
		var torn []record.Torn
		entries := 0
		for line := range bytes.Lines(data) {
			h, err := record.ReadHeader(bytes.TrimSuffix(line, []byte("\n")))
			if err != nil {
				continue
			}
			entries++
			if h.Kind == record.KindTorn {
				var e record.Torn
				if err := json.Unmarshal(line, &e); err != nil {
					t.Error(err)
				}
				torn = append(torn, e)
			}
		}
		if len(torn) != 1 || torn[0].Lost != lost || entries != 5-lost {
			t.Errorf("%d bytes left: %d entries, torn %+v:\n%s", left, entries, torn, data)
		}
	}
}

// TestLastEntryThatFindsNoRoom is told of when the journal is closed.
func TestLastEntryThatFindsNoRoom(t *testing.T) {
	for _, left := range []int{0, 50} {
		dir := t.TempDir()
		d := &disk{left: 1 << 20}
		j := record.Open(record.Options{Dir: dir}.WithFiles(d.wrap))
		run := j.Begin("aaaaaaaaaa", "")
		if err := run.Append(ok); err != nil {
			t.Fatal(err)
		}
		d.room(left)
		if err := run.Append(ok); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
		d.room(1 << 20)
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		whole(t, dir)
		want := []string{"call.end", "torn"}
		if left > 0 {
			want = []string{"call.end", "-", "torn"}
		}
		if got := kinds(t, entryFiles(t, dir)[0]); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		if data, _ := os.ReadFile(entryFiles(t, dir)[0]); !bytes.Contains(data, []byte(`"lost":1`)) {
			t.Errorf("%s", data)
		}
	}
}

func TestValueThatFindsNoRoom(t *testing.T) {
	dir := t.TempDir()
	d := &disk{left: 1 << 20}
	j := record.Open(record.Options{Dir: dir}.WithFiles(d.wrap))
	run := j.Begin("aaaaaaaaaa", "")
	d.room(400) // for the entry
	start := record.CallStart{Call: 1, Server: "s", Arguments: record.TextOf(strings.Repeat("x", 1000))}
	if err := run.Append(start); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if gap := j.Incomplete(); gap.Entries != 0 || gap.Values != 1 {
		t.Errorf("%+v", gap)
	}
	d.room(1 << 20)
	if err := errors.Join(run.Append(start), j.Close()); err != nil {
		t.Error(err)
	}
	if notes := whole(t, dir); !slices.Equal(notes, []string{"1 value was not written, forgotten or removed"}) {
		t.Errorf("notes %q", notes)
	}
	if got := kinds(t, entryFiles(t, dir)[0]); !slices.Equal(got, []string{"call.start", "torn", "call.start"}) {
		t.Errorf("kinds %q", got)
	}
}

// TestSharedFileThatWasTorn is what a command finds that begins after another one was killed, at
// each byte of its last line.
func TestSharedFileThatWasTorn(t *testing.T) {
	dir := t.TempDir()
	append := func() {
		t.Helper()
		j := record.Open(record.Options{Dir: dir, Host: "vm", Shared: true})
		if err := errors.Join(j.Begin("aaaaaaaaaa", "").Append(ok), j.Close()); err != nil {
			t.Fatal(err)
		}
	}
	append()
	path := entryFiles(t, dir)[0]
	first, _ := os.ReadFile(path)
	append()
	both, _ := os.ReadFile(path)
	for size := len(first); size <= len(both); size++ {
		if err := os.WriteFile(path, both[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		append()
		whole(t, dir)
		want := []string{"call.end", "-", "torn", "call.end"}
		switch size {
		case len(first):
			want = []string{"call.end", "call.end"}
		case len(both) - 1, len(both):
			want = []string{"call.end", "call.end", "call.end"}
		}
		if got := kinds(t, path); !slices.Equal(got, want) {
			t.Fatalf("cut to %d bytes: %q, want %q", size, got, want)
		}
		// The process that closed the line was killed as well, before it said so.
		if size > len(first) && size < len(both)-1 {
			if err := os.WriteFile(path, slices.Concat(both[:size], []byte("\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			append()
			whole(t, dir)
		}
	}
}

func TestNilRecordsNothing(t *testing.T) {
	var j *record.Journal
	run := j.Begin("aaaaaaaaaa", "")
	s := run.NewStream()
	s.Write([]byte("x"))
	if err := errors.Join(run.Append(ok), j.Append(record.Pin{}), j.Ready(), j.Close()); err != nil || run.Lost() != 0 || j.Incomplete() != (record.Gap{}) {
		t.Error(err)
	}
	_ = s.Text()
}

func TestFolderThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := record.Open(record.Options{Dir: filepath.Join(file, "records")})
	run := j.Begin("aaaaaaaaaa", "")
	if err := run.Append(ok); err == nil || j.Ready() == nil || run.Lost() != 1 {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}

// TestReadersDoNotDisturbAJournal that begins while they look which files are being written to, and
// find no problem.
func TestReadersDoNotDisturbAJournal(t *testing.T) {
	dir := t.TempDir()
	stop := make(chan struct{})
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if report, err := history.Open(dir).Verify(nil); err != nil || report.Problems != nil {
					t.Error(report, err)
					return
				}
			}
		})
	}
	for range 50 {
		j := record.Open(record.Options{Dir: dir, Host: "vm"})
		if err := errors.Join(j.Begin("aaaaaaaaaa", "").Append(ok), j.Close()); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	reading.Wait()
	if notes := whole(t, dir); notes != nil {
		t.Errorf("notes %q", notes)
	}
}
