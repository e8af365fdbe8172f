package output

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAFileHoldsTheStartOfAStream if all of it is too long.
func TestAFileHoldsTheStartOfAStream(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	o := &overflow{file: f, name: "stdout.txt", size: maxOverflow - 4}
	o.write([]byte("abc"), []byte("def"))
	o.write([]byte("ghi"))
	var kept []Spilled
	o.finish(func(k Spilled, named func(string)) {
		kept = append(kept, k)
		named("file://x")
	})
	want := Spilled{Path: f.Name(), Name: "stdout.txt", Size: maxOverflow}
	if len(kept) != 1 || kept[0] != want {
		t.Errorf("kept %+v, want %+v", kept, want)
	}
	if got, err := os.ReadFile(f.Name()); string(got) != "abcd" || err != nil {
		t.Errorf("the file has %q, %v", got, err)
	}
	if got, want := o.said(), "; the first 64 MiB of all: file://x"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
}

// TestWhatIsSaidOfAFile is in the line for what is missing.
func TestWhatIsSaidOfAFile(t *testing.T) {
	for name, tt := range map[string]struct {
		flags int // that the file is opened with
		err   error
		uri   string
		kept  int // how many files
		want  string
	}{
		"kept":               {os.O_RDWR, nil, "file://x", 1, "… 4 bytes left out; all of it: file://x"},
		"not named":          {os.O_RDWR, nil, "", 1, "… 4 bytes left out"},
		"cannot be made":     {0, errors.New("no space"), "file://x", 0, "… 4 bytes left out; it could not be kept: no space"},
		"cannot be written":  {os.O_RDONLY, nil, "file://x", 0, "… 4 bytes left out; it could not be kept: write PATH: bad file descriptor"},
		"neither, nor named": {0, errors.New("no space"), "", 0, "… 4 bytes left out; it could not be kept: no space"},
	} {
		path := filepath.Join(t.TempDir(), "file")
		w := &Pipes{limit: 8, Stdout: newCapture(8), Stderr: newCapture(2)}
		w.KeepWhole(func() (*os.File, error) {
			if tt.err != nil {
				return nil, tt.err
			}
			return os.OpenFile(path, tt.flags|os.O_CREATE, 0o600)
		}, false, false)
		for _, part := range []string{"0123", "456789", "ab"} {
			if _, err := w.Stdout.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		kept := 0
		w.Finish(func(_ Spilled, named func(string)) {
			kept++
			named(tt.uri)
		})
		lines, _, _ := w.Lines()
		got := strings.ReplaceAll(strings.Join(lines, "|"), path, "PATH")
		if want := "01|" + tt.want + "|6789ab"; got != want || kept != tt.kept {
			t.Errorf("%s: %d files, got %q; want %d, %q", name, kept, got, tt.kept, want)
		}
		if b, err := os.ReadFile(path); tt.kept == 1 && string(b) != "0123456789ab" || tt.kept == 0 && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the file has %q, %v", name, b, err)
		}
	}
}
