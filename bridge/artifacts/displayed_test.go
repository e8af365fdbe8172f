package artifacts

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolcell/toolcell/bridge/imaging"
)

const svg = `<svg xmlns="http://www.w3.org/2000/svg"/>`

// TestSVGPicturesAreFiles that the result does not show; a note says so unless their
// raster form follows.
func TestSVGPicturesAreFiles(t *testing.T) {
	inAFile := filepath.Join(t.TempDir(), "file")
	written(t, filepath.Dir(inAFile), "file")
	const shown = `SVG picture "chart.svg" is kept as a file and not shown: the image has no cairosvg, which makes PNG of it`
	const lost = `SVG picture "chart.svg" could not be kept: this server has no folder for files of runs`
	for name, c := range map[string]struct {
		dir           string
		rasterFollows bool
		files, notes  []string
	}{
		"alone":               {t.TempDir(), false, []string{"chart.svg"}, []string{shown}},
		"a raster form, too":  {t.TempDir(), true, []string{"chart.svg"}, nil},
		"no folder for files": {"", false, nil, []string{lost}},
		"neither, but raster": {"", true, nil, []string{lost}},
		"another reason":      {inAFile, false, nil, []string{`picture "chart.svg" could not be kept as a file: mkdir ` + inAFile + `: not a directory`}},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(Options{Dir: c.dir}).NewCollector(t.Context(), newRunID())
			defer r.Discard()
			if err := r.Display("chart.SVG", []byte(svg), c.rasterFollows); err != nil {
				t.Fatal(err)
			}
			left := r.Finish()
			if !slices.Equal(listed(left), c.files) || !slices.Equal(left.Notes, c.notes) || len(left.Pictures) > 0 {
				t.Errorf("files %v, notes %q, %d pictures", listed(left), left.Notes, len(left.Pictures))
			}
		})
	}
}

// TestWhatIsNoPictureIsRefused, whatever its name; it is not kept.
func TestWhatIsNoPictureIsRefused(t *testing.T) {
	for _, name := range []string{"chart.png", "page.html", "svg", ""} {
		r := storeOf(t, imaging.Limits{}).NewCollector(t.Context(), newRunID())
		err := r.Display(name, []byte("<html>"), false)
		if err == nil || !strings.Contains(err.Error(), "its bytes are neither PNG, JPEG, GIF nor WebP") {
			t.Errorf("%s: %v", name, err)
		}
		if left := r.Finish(); len(left.Files) > 0 || left.Folder != "" {
			t.Errorf("%s: kept %v", name, listed(left))
		}
		r.Discard()
	}
}

// TestPicturesAreFoundAsFiles under the name and URI that the result gives. The result lists
// those that it shows smaller than they are.
func TestPicturesAreFoundAsFiles(t *testing.T) {
	s := storeOf(t, imaging.Limits{Side: 16, Time: time.Hour})
	r := s.NewCollector(t.Context(), newRunID())
	defer r.Discard()
	large, small := squarePNG(t, 32), squarePNG(t, 8)
	for _, p := range []struct {
		name string
		data []byte
	}{{"chart.jpeg", small}, {"chart", large}, {"../my.chart.PNG", small}} {
		if err := r.Display(p.name, p.data, false); err != nil {
			t.Fatal(err)
		}
	}
	left := r.Finish()
	if !slices.Equal(listed(left), []string{"chart-2.png"}) || len(left.Notes) > 0 {
		t.Errorf("files %v, notes %q", listed(left), left.Notes)
	}
	var names []string
	for i, p := range left.Pictures {
		names = append(names, p.Name)
		c, err := s.Read(p.URI)
		if err != nil || string(c.Blob) != string([][]byte{small, large, small}[i]) {
			t.Errorf("%s cannot be read as it was given: %v", p.URI, err)
		}
	}
	if want := []string{"chart.png", "chart-2.png", "_._my.chart.png"}; !slices.Equal(names, want) {
		t.Errorf("shown: %v, want %v", names, want)
	}
}

// TestPictureThatCannotBeKeptIsShown, and a note says why it is no file.
func TestPictureThatCannotBeKeptIsShown(t *testing.T) {
	dir := t.TempDir()
	written(t, dir, "file")
	r := New(Options{Dir: filepath.Join(dir, "file")}).NewCollector(t.Context(), newRunID())
	defer r.Discard()
	r.displays(t, squarePNG(t, 8))
	left := r.Finish()
	if len(left.Pictures) != 1 || left.Pictures[0].URI != "" || len(left.Notes) != 1 ||
		!strings.HasPrefix(left.Notes[0], `picture "picture.png" could not be kept as a file: `) {
		t.Errorf("%+v, notes %q", left.Pictures, left.Notes)
	}
}

// TestPicturesThatAreNeitherShownNorKeptAreSaid to be lost.
func TestPicturesThatAreNeitherShownNorKeptAreSaid(t *testing.T) {
	for dir, want := range map[string]string{
		"":          "2 pictures beyond the 1 that a result shows: neither shown nor kept",
		t.TempDir(): "2 pictures beyond the 1 that a result shows: kept as files",
	} {
		r := New(Options{Dir: dir, Pictures: imaging.Limits{Count: 1, Time: time.Hour}}).NewCollector(t.Context(), newRunID())
		defer r.Discard()
		small := squarePNG(t, 8)
		r.displays(t, small, small, small)
		if left := r.Finish(); len(left.Pictures) != 1 || !slices.Equal(left.Notes, []string{want}) {
			t.Errorf("%d pictures, notes %q", len(left.Pictures), left.Notes)
		}
	}
}

// TestPictureTooLargeForMemoryKeepsNoOtherOut: it does not wait there.
func TestPictureTooLargeForMemoryKeepsNoOtherOut(t *testing.T) {
	r := New(Options{Pictures: imaging.Limits{Time: time.Hour}}).NewCollector(t.Context(), newRunID())
	defer r.Discard()
	small := squarePNG(t, 8)
	r.displays(t, padded(small, maxUnkept+1), small)
	left := r.Finish()
	if len(left.Pictures) != 1 || len(left.Notes) != 1 || !strings.Contains(left.Notes[0], "cannot be shown: pictures that are not kept as files can have 8 MiB in all") {
		t.Errorf("%d pictures, notes %q", len(left.Pictures), left.Notes)
	}
}

// TestPictureWhoseFileIsGoneIsNotShown, and the reason is that.
func TestPictureWhoseFileIsGoneIsNotShown(t *testing.T) {
	d := displayed{file: filepath.Join(t.TempDir(), "gone")}
	if _, err := d.render(t.Context(), imaging.NewDecoders(imaging.Limits{}).NewRenderer()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestPicturesInMemoryAreDropped once they are decoded.
func TestPicturesInMemoryAreDropped(t *testing.T) {
	r := New(Options{}).NewCollector(t.Context(), newRunID())
	defer r.Discard()
	before := heap()
	r.displays(t, padded(squarePNG(t, 8), maxUnkept))
	if left := r.Finish(); len(left.Pictures) != 1 {
		t.Errorf("notes %q", left.Notes)
	}
	if after := heap(); after > before+maxUnkept/2 {
		t.Errorf("%d KiB are in use still", (after-before)>>10)
	}
	runtime.KeepAlive(r)
}

// TestDiscardedRunLeavesNothing: no file, no work, no lock.
func TestDiscardedRunLeavesNothing(t *testing.T) {
	s := keepingStore(t)
	synctest.Test(t, func(t *testing.T) { // fails if something goes on
		r := s.NewCollector(t.Context(), newRunID())
		if err := r.Display("chart.svg", []byte(svg), false); err != nil {
			t.Error(err)
		}
		if len(runsIn(t, s)) != 1 {
			t.Error("there was no file")
		}
		if r.Discard(); !r.mu.TryLock() {
			t.Error("it stays locked")
		}
	})
	if left := runsIn(t, s); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
