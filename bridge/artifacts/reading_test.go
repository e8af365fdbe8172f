package artifacts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// put writes a file, and its folder.
func put(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFilesBesideThoseOfRunsAreNotRead, though they are there.
func TestFilesBesideThoseOfRunsAreNotRead(t *testing.T) {
	s := New(Options{Dir: filepath.Join(t.TempDir(), "runs")})
	for _, path := range []string{"../x.txt", "x.txt", "other/x.txt", ".0123456789/x.txt", "0123456789abcdef0/x.txt"} {
		put(t, filepath.Join(s.o.Dir, path))
	}
	for _, uri := range []string{"../x.txt", "/x.txt", "./x.txt", "other/x.txt", ".0123456789/x.txt", "0123456789abcdef0/x.txt"} {
		refused(t, s, runsURI+uri)
	}
}

// TestStoreWithoutAFolderReadsNothing, not even from the server's own folder.
func TestStoreWithoutAFolderReadsNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "0123456789/x.txt")
	refused(t, New(Options{}), fileURI("0123456789", "x.txt"))
}

func refused(t *testing.T, s *Store, uri string) {
	t.Helper()
	if c, err := s.Read(uri); err == nil || !strings.Contains(err.Error(), "is not the URI of a run's file; the result of a run lists them") {
		t.Errorf("%s: %+v, %v", uri, c, err)
	}
}

// TestRemovedFilesAreExplained with the limits that this server has.
func TestRemovedFilesAreExplained(t *testing.T) {
	s := New(Options{Dir: t.TempDir(), Limits: Limits{Age: 36 * time.Hour, Size: 3 << 20}})
	const want = `there is no file "toolcell://runs/0123456789/x.txt" any more: files of runs are removed after 36h0m0s, ` +
		`or earlier if all of them take more than 3 MiB; run the code again`
	if _, err := s.Read(fileURI("0123456789", "x.txt")); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// TestFolderIsNoEmptyFile: what cannot be read is an error.
func TestFolderIsNoEmptyFile(t *testing.T) {
	s := New(Options{Dir: t.TempDir()})
	put(t, filepath.Join(s.o.Dir, "0123456789", "folder.txt", "x.txt"))
	if c, err := s.Read(fileURI("0123456789", "folder.txt")); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestOnlyFoldersOfRunsAreRemoved, whatever the age of what else is there.
func TestOnlyFoldersOfRunsAreRemoved(t *testing.T) {
	s := New(Options{Dir: filepath.Join(t.TempDir(), "runs"), Limits: Limits{Age: time.Hour}})
	id := putRun(t, s, 2*time.Hour, 1)
	kept := []string{".file", "0123456789", "other/x.txt"}
	for _, path := range kept {
		put(t, filepath.Join(s.o.Dir, path))
	}
	s.Clean(time.Now().Add(1000 * time.Hour))
	if got := runsIn(t, s); !slices.Equal(got, []string{".file", "0123456789", "other"}) {
		t.Errorf("%q are left, %s was a run", got, id)
	}
}

// TestFilesAreCleanedOnceAtATime: a run that ends meanwhile does not wait.
func TestFilesAreCleanedOnceAtATime(t *testing.T) {
	s := New(Options{Dir: filepath.Join(t.TempDir(), "runs"), Limits: Limits{Age: time.Hour}})
	id := putRun(t, s, 2*time.Hour, 1)
	s.cleaning.Lock()
	if s.Clean(time.Now()); !slices.Equal(runsIn(t, s), []string{id}) {
		t.Error("it was cleaned twice at once")
	}
	s.cleaning.Unlock()
	if s.Clean(time.Now()); len(runsIn(t, s)) > 0 {
		t.Error("it is not cleaned any more")
	}
}
