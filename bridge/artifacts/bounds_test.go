package artifacts

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row: "names of files",
		Shapes: append(boundtest.Only(boundtest.Lines("", ""), "header lines", "a long line", "bytes that are not UTF-8", "empty lines"),
			boundtest.Repeated("the same name", "", "a.png\n", ""),
			boundtest.Repeated("names of nothing", "", "/\n", ""),
			boundtest.Counted("names", "", "a%d.png\n", "", ""),
			boundtest.Counted("names with numbers", "", "a-%d.png\n", "", ""),
			boundtest.Counted("long names", "", strings.Repeat("é", 300)+"%d.png\n", "", ""),
			boundtest.Repeated("characters of four bytes", "", "😀", ""),
		),
		Parse: func(text []byte) error {
			taken := map[string]int{}
			for _, name := range strings.SplitN(string(text), "\n", maxOutFiles+maxDisplayed) {
				freeName(name, taken)
			}
			return nil
		},
	})
}

func TestTwinsGetTheirNumbersInOrder(t *testing.T) {
	taken := map[string]int{}
	for _, want := range []string{"a.png", "a-2.png", "a-2-2.png", "a-3.png", "a-4.png"} {
		name := "a.png"
		if want == "a-2-2.png" {
			name = "a-2.png"
		}
		if got := freeName(name, taken); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if got := plainName(strings.Repeat("x", 1<<20) + ".png"); len(got) != maxNameBytes || !strings.HasSuffix(got, "x.png") {
		t.Errorf("%d bytes, %s", len(got), got)
	}
}
