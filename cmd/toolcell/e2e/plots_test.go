package e2e

import (
	"image"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci"
)

// withMatplotlib is the image to draw in: the one of `make test-data`, or the
// host's own Python.
func withMatplotlib(t *testing.T) string {
	t.Helper()
	if layout := os.Getenv("TOOLCELL_TEST_DATA"); layout != "" {
		return "oci:" + layout
	}
	if _, err := os.Stat("/usr/lib/python3/dist-packages/matplotlib"); err != nil {
		t.Skip("needs matplotlib: apt-get install python3-matplotlib")
	}
	return "host"
}

// drawing has what a run needs that draws: it is slow to import, where nothing
// is compiled.
var drawing = env{"TOOLCELL_TIMEOUT": "100s", "TOOLCELL_MEMORY": "1g"}

func (e env) with(name, value string) env {
	out := maps.Clone(e)
	out[name] = value
	return out
}

// color gives a pixel as one knows it.
func colour(m image.Image, x, y int) (rgb [3]uint8) {
	r, g, b, _ := m.At(m.Bounds().Min.X+x, m.Bounds().Min.Y+y).RGBA()
	return [3]uint8{uint8(r >> 8), uint8(g >> 8), uint8(b >> 8)}
}

const figure = "import matplotlib.pyplot as plt\ndef figure(colour, **k):\n  f = plt.figure(facecolor=colour, **k); f.add_subplot().plot([1, 3, 2]); return f\n"

// TestFiguresAreShown that are open at the end, that show() is called for, and
// that display is given: each once.
func TestFiguresAreShown(t *testing.T) {
	t.Parallel()
	e := drawing.with("TOOLCELL_IMAGE", withMatplotlib(t))
	inEveryWay(t, onFirstHost, func(t *testing.T, h *host) {
		for _, preload := range []string{"", "matplotlib.pyplot"} {
			t.Run("preload "+preload, func(t *testing.T) {
				c := h.serve(t, e.with("TOOLCELL_PRELOAD", preload))
				r := c.python(t, "import os, sys; print(os.environ['MPLBACKEND'], 'matplotlib' in sys.modules)")
				if preload == "" || h.start == oci.StartFork { // else the first run is not preloaded yet
					r.want(t, map[string]string{"": "Agg False", "matplotlib.pyplot": "Agg True"}[preload])
				}
				r, all := c.pictures(t, figure+"figure('red'); plt.show(); print(plt.get_fignums())\ndisplay(figure('lime').axes[0])\nfigure('blue', figsize=(30, 2)); figure('black')\nprint(plt.get_backend().lower())")
				if r.isError || len(all) != 4 || !strings.HasPrefix(r.text, "[]\nagg\nfile: figure-3.png") {
					t.Fatalf("%d pictures: %s", len(all), r.text)
				}
				for i, want := range [][3]uint8{{255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {0, 0, 0}} {
					if got := colour(all[i], 1, 1); got != want {
						t.Errorf("picture %d is %v, want %v", i, got, want)
					}
				}
				if w, h := all[0].Bounds().Dx(), all[0].Bounds().Dy(); w < 400 || w > 700 || h < 300 || h > 520 {
					t.Errorf("a figure of the usual size has %d×%d pixels", w, h)
				}
				if all[2].Bounds().Dx() != 1024 {
					t.Errorf("a wide figure is %v", all[2].Bounds())
				}
				// The next run has none of it.
				if r, all := c.pictures(t, "print('next')"); len(all) != 0 || r.text != "next" {
					t.Errorf("then %d pictures: %s", len(all), r.text)
				}
			})
		}
	})
}

// TestFiguresOfCodeThatFails are shown; one that cannot be drawn says why and
// is in nobody's way.
func TestFiguresOfCodeThatFails(t *testing.T) {
	t.Parallel()
	c := firstHost(t).serve(t, drawing.with("TOOLCELL_IMAGE", withMatplotlib(t)))
	r, all := c.pictures(t, figure+"figure('red'); figure('red').suptitle(r'$\\frac$'); figure('red', figsize=(100, 100))\n1 / 0")
	if len(all) != 2 || r.status() != "error" || !strings.Contains(r.text, "figure 2 cannot be drawn: ") || !strings.Contains(r.text, "ZeroDivisionError") {
		t.Errorf("%d pictures: %s", len(all), r.text)
	}
	r, all = c.pictures(t, figure+"f = figure('red'); f.savefig('/workspace/out/figure-1.png'); plt.close(f); figure('red')\nplt.figure()")
	if len(all) != 1 || len(r.files()) != 1 || r.files()["figure-1.png"]["type"] != "image/png" {
		t.Errorf("saved: %d pictures: %s", len(all), r.text)
	}
}

// TestPicturesOfLibraries show themselves.
func TestPicturesOfLibraries(t *testing.T) {
	image := withMatplotlib(t)
	c := firstHost(t).serve(t, drawing.with("TOOLCELL_IMAGE", image))
	r, all := c.pictures(t, "from PIL import Image\nfor mode in '1', 'L', 'P', 'RGB', 'RGBA', 'CMYK', 'F', 'I;16': display(Image.new(mode, (40, 30)))")
	if r.isError || len(all) != 8 || all[3].Bounds().Dx() != 40 {
		t.Errorf("%d pictures: %s", len(all), r.text)
	}
	r, all = c.pictures(t, "from PIL import Image\ndisplay(Image.new('RGB', (9000, 100), 'red'))")
	if len(all) != 1 || all[0].Bounds().Dx() != 1024 || colour(all[0], 5, 5) != [3]uint8{255, 0, 0} {
		t.Errorf("a long one: %d pictures: %s", len(all), r.text)
	}
	if image != "host" {
		return // that one has no cairosvg
	}
	r, all = c.pictures(t, "class S:\n  def _repr_svg_(self): return '<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"50\" height=\"20\"><rect width=\"50\" height=\"20\" fill=\"red\"/></svg>'\ndisplay(S())")
	if len(all) != 1 || all[0].Bounds().Dx() != 50 || colour(all[0], 25, 10) != [3]uint8{255, 0, 0} || r.files()["picture-1.svg"] == nil {
		t.Errorf("SVG: %d pictures: %s", len(all), r.text)
	}
}

// TestTablesAreText: tables in results are text and complete.
func TestTablesAreText(t *testing.T) {
	if _, err := os.Stat("/usr/lib/python3/dist-packages/pandas"); err != nil && os.Getenv("TOOLCELL_TEST_DATA") == "" {
		t.Skip("needs pandas: apt-get install python3-pandas, or make test-data")
	}
	c := firstHost(t).serve(t, drawing.with("TOOLCELL_IMAGE", withMatplotlib(t)))
	r := c.python(t, "import pandas as pd\nd = pd.DataFrame({f'column{i}': range(100) for i in range(20)})\ndisplay(d, d.column3)")
	for _, want := range []string{" column0 ", " column19", "\n99 ", "[100 rows x 20 columns]", "Name: column3, Length: 100, dtype: int64"} {
		if !strings.Contains(r.text, want) {
			t.Errorf("no %q in\n%s", want, r.text)
		}
	}
}
