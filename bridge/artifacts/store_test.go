package artifacts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolcell/toolcell/internal/text"
)

// putRun makes the folder of a run that ended some time ago.
func putRun(t *testing.T, s *Store, age time.Duration, size int) string {
	t.Helper()
	run := s.NewCollector(t.Context(), newRunID())
	if _, err := run.keep(keptFile{name: "x.txt"}, strings.NewReader(strings.Repeat("x", size))); err != nil {
		t.Fatal(err)
	}
	left := run.Finish()
	if age == 0 {
		return run.id // another store may have removed it already
	}
	at := time.Now().Add(-age)
	if err := os.Chtimes(left.Folder, at, at); err != nil {
		t.Fatal(err)
	}
	return run.id
}

func runsIn(t *testing.T, s *Store) (ids []string) {
	t.Helper()
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}

func TestFilesGoByAgeAndBySize(t *testing.T) {
	s := New(Options{Dir: filepath.Join(t.TempDir(), "runs"), Limits: Limits{Age: time.Hour, Size: 250}})
	s.Clean(time.Now()) // nothing is there yet
	putRun(t, s, 2*time.Hour, 10)
	if s.Clean(time.Now()); len(runsIn(t, s)) != 0 {
		t.Error("an old one stays, since there is room")
	}
	putRun(t, s, 50*time.Minute, 100)
	second := putRun(t, s, 40*time.Minute, 100)
	last := putRun(t, s, 30*time.Minute, 100)
	old := filepath.Join(s.o.Dir, ".0123456789")
	young := filepath.Join(s.o.Dir, ".9876543210")
	for dir, age := range map[string]time.Duration{old: 48 * time.Hour, young: time.Hour} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	s.Clean(time.Now())
	want := []string{filepath.Base(young), second, last}
	slices.Sort(want)
	if got := runsIn(t, s); !slices.Equal(got, want) {
		t.Errorf("%v are left, want %v", got, want)
	}
	if _, err := s.Read(fileURI(last, "x.txt")); err != nil {
		t.Error(err)
	}
}

func TestTheLastRunStaysWhateverItsSize(t *testing.T) {
	s := New(Options{Dir: filepath.Join(t.TempDir(), "runs"), Limits: Limits{Size: 1}})
	putRun(t, s, time.Minute, 100)
	last := putRun(t, s, 0, 100)
	s.Clean(time.Now())
	if got := runsIn(t, s); !slices.Equal(got, []string{last}) {
		t.Errorf("%v are left, want %s", got, last)
	}
}

// TestServersCleanTheSameFolder at once, while runs end.
func TestServersCleanTheSameFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	var all sync.WaitGroup
	for range 4 {
		s := New(Options{Dir: dir, Limits: Limits{Size: 500}})
		all.Go(func() {
			for range 20 {
				putRun(t, s, 0, 100)
				s.Clean(time.Now())
			}
		})
	}
	all.Wait()
	s := New(Options{Dir: dir, Limits: Limits{Size: 500}})
	s.Clean(time.Now())
	left := runsIn(t, s)
	if len(left) == 0 || len(left) > 5 {
		t.Errorf("%d runs are left", len(left))
	}
	for _, id := range left {
		if c, err := s.Read(fileURI(id, "x.txt")); err != nil || len(c.Text) != 100 {
			t.Errorf("run %s: %v", id, err)
		}
	}
}

// TestHostileNames of files stay in the run's folder, and can be addressed.
func TestHostileNames(t *testing.T) {
	s := New(Options{Dir: filepath.Join(t.TempDir(), "runs")})
	f := &Collector{store: s, id: newRunID()}
	names := []string{
		"../../x", "..", ".", "", "/etc/passwd", "a/b", "a_b", "a\x00b", "a\nb", "\xff\xfe", "\u202egpj.exe", "a b&c=d?e#f%2F.csv",
		strings.Repeat("ä", 300) + ".csv", ".part-1", "-rf", "--help", "x.csv", "x.csv", "x.csv", "x-2.csv", `C:\x`,
	}
	for _, name := range names {
		if _, err := f.keep(keptFile{name: name}, strings.NewReader(name)); err != nil {
			t.Fatal(err)
		}
	}
	r := f.publish()
	if len(r.Files) != len(names) || filepath.Dir(r.Folder) != s.o.Dir {
		t.Fatalf("%d files, notes %v", len(r.Files), r.Notes)
	}
	for i, file := range r.Files {
		if file.Name != plainName(file.Name) || len(file.Name) > 255 || strings.HasPrefix(file.Name, ".") || strings.HasPrefix(file.Name, "-") {
			t.Errorf("%q became %q", names[i], file.Name)
		}
		// What the template's {name} stands for (RFC 6570, 3.2.2).
		if at := strings.TrimPrefix(file.URI, runsURI+f.id+"/"); strings.Trim(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%") != "" || strings.ContainsAny(at, "/?#&=+") {
			t.Errorf("%q is not matched by the template", file.URI)
		}
		body, err := os.ReadFile(filepath.Join(r.Folder, file.Name))
		if err != nil || string(body) != names[i] {
			t.Errorf("%q: %q, %v", file.Name, body, err)
		}
		if _, err := s.Read(file.URI); err != nil {
			t.Error(err)
		}
	}
}

// TestReadingRefusesPaths that are no file of a run's.
func TestReadingRefusesPaths(t *testing.T) {
	s := New(Options{Dir: filepath.Join(t.TempDir(), "runs")})
	id := putRun(t, s, 0, 1)
	if err := os.Symlink("/etc/passwd", filepath.Join(s.o.Dir, id, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{id + "/link", id + "/../" + id + "/x.txt", id + "/..%2Fx", id + "/", id, "../" + id + "/x.txt", id + "/%2e%2e", "." + id + "/x.txt", id + "/%zz"} {
		if c, err := s.Read(runsURI + name); err == nil {
			t.Errorf("%s can be read: %+v", name, c)
		}
	}
}

func TestContentIsGivenAsTextOrBytes(t *testing.T) {
	s := New(Options{Dir: filepath.Join(t.TempDir(), "runs")})
	for name, tt := range map[string]struct {
		body, mime string
		text       bool
	}{
		"a.csv":     {"1,2", "text/csv", true},
		"a.json":    {"{}", "application/json", true},
		"a.svg":     {"<svg/>", "image/svg+xml", true},
		"a.txt":     {"\xff", "text/plain", false},
		"a":         {"hello", "text/plain", true},
		"A.PNG":     {"\x89PNG\r\n\x1a\n", "image/png", false},
		"a.parquet": {"PAR1", "application/vnd.apache.parquet", false},
		"empty":     {"", "text/plain", true},
	} {
		f := &Collector{store: s, id: newRunID()}
		if _, err := f.keep(keptFile{name: name}, strings.NewReader(tt.body)); err != nil {
			t.Fatal(err)
		}
		r := f.publish()
		c, err := s.Read(r.Files[0].URI)
		if err != nil || c.MIMEType != tt.mime || r.Files[0].Type != tt.mime || (c.Blob == nil) != tt.text || c.Text+string(c.Blob) != tt.body {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
}

func TestSizesAreWrittenForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 1: "1 byte", 1023: "1023 bytes", 1024: "1 KiB", 1536: "1.5 KiB", 128 << 20: "128 MiB", 3 << 29: "1.5 GiB"} {
		if got := text.Size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestFullDiskIsNamed(t *testing.T) {
	s := New(Options{Dir: "/state/runs"})
	err := s.explain(fmt.Errorf("copying: %w", &os.PathError{Op: "write", Path: "/state/runs/.x/.part-1", Err: unix.ENOSPC}))
	if !errors.Is(err, unix.ENOSPC) || err.Error() != "the disk with /state/runs, where files of runs are kept, is full: no space left on device" {
		t.Error(err)
	}
	if err := s.explain(os.ErrPermission); !errors.Is(err, os.ErrPermission) || err.Error() != os.ErrPermission.Error() {
		t.Error(err)
	}
}
