package scriptheader

import (
	"bytes"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	shapes := append(boundtest.TOML("", ""), boundtest.Repeated("dependencies", "dependencies = [", `"a",`, "]"))
	for i, s := range shapes {
		shapes[i].Make = func(n int) []byte {
			text := bytes.ReplaceAll(bytes.TrimSuffix(s.Make(n/3), []byte("\n")), []byte("\n"), []byte("\n# "))
			return append(append([]byte("# /// script\n# "), text...), "\n# ///\n"...)
		}
	}
	boundtest.Run(t, boundtest.Parser{
		Row:    "code with its header",
		Shapes: append(shapes, boundtest.Repeated("openings", "", "# /// script\n", ""), boundtest.Repeated("comments", "# /// script\n", "#\n", "")),
		Parse: func(text []byte) error {
			_, err := Parse(string(text))
			return err
		},
	})
}
