package artifacts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/imaging"
	"github.com/toolcell/toolcell/internal/boundtest"
)

// collect keeps the empty files that a run has left in /workspace/out, which have these
// names; one that ends with a slash is a folder.
func collect(t *testing.T, names ...string) Published {
	t.Helper()
	dir := boundtest.Dir(t)
	for _, name := range names {
		path := filepath.Join(dir, outDir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	c := New(Options{Dir: filepath.Join(dir, "runs")}).NewCollector(t.Context(), newRunID())
	t.Cleanup(c.Discard)
	c.Collect(NewWorkspace(folder, nil))
	return c.Finish()
}

// numbered returns n names in this form.
func numbered(form string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(form, i)
	}
	return names
}

func TestFilesThatARunLeavesAreBounded(t *testing.T) {
	deep := strings.Repeat("d/", maxOutDepth)
	for name, c := range map[string]struct {
		names []string
		files int
		note  string
	}{
		"as many as there may be": {numbered("%d", maxOutFiles), maxOutFiles, ""},
		"one more":                {numbered("%d", maxOutFiles+1), maxOutFiles, "has 257 new files"},
		"as deep as there may be": {[]string{deep + "f"}, 1, ""},
		"one deeper":              {[]string{deep + "d/f"}, 0, "to a depth of 8: left out d/d/d/d/d/d/d/d/d"},
		"as many as looked at":    {numbered("%d/", maxOutEntries), 0, ""},
		"one more than that":      {numbered("%d/", maxOutEntries+1), 0, "has more than 4096 files and folders"},
	} {
		got := collect(t, c.names...)
		if notes := strings.Join(got.Notes, "\n"); len(got.Files) != c.files || (c.note == "") != (notes == "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: %d files, %q", name, len(got.Files), notes)
		}
	}
}

func TestPicturesThatARunDisplaysAreBounded(t *testing.T) {
	small := squarePNG(t, 8)
	half := padded(small, maxPixelated/2)
	for name, c := range map[string]struct {
		before [][]byte
		last   []byte
		want   string
	}{
		"as many as there may be":  {slices.Repeat([][]byte{small}, maxDisplayed-1), small, ""},
		"one more":                 {slices.Repeat([][]byte{small}, maxDisplayed), small, "a run can display 64 pictures"},
		"as large as there may be": {nil, padded(small, maxPicture), ""},
		"larger":                   {nil, padded(small, maxPicture+1), "a picture can have 32 MiB"},
		"as large as all may be":   {[][]byte{half}, half, ""},
		"larger together":          {[][]byte{half, half}, small, "all of a run 64 MiB"},
	} {
		r := storeOf(t, imaging.Limits{Count: 1, Time: time.Hour}).NewCollector(t.Context(), newRunID())
		r.displays(t, c.before...)
		if err := r.Display("picture", c.last, false); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		r.Discard()
	}
}

// TestReadingIsBounded by what a client takes in one message.
func TestReadingIsBounded(t *testing.T) {
	s := New(Options{Dir: filepath.Join(t.TempDir(), "runs")})
	for size, want := range map[int]string{maxRead: "", maxRead + 1: "more than the 11 MiB that a client takes"} {
		c, err := s.Read(runsURI + putRun(t, s, 0, size) + "/x.txt")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && len(c.Text) != size {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
