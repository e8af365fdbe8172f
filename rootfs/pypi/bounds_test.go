package pypi

import (
	"bytes"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

func TestBounds(t *testing.T) {
	boundtest.Run(t, boundtest.Parser{
		Row: "entry points of a package",
		Shapes: append(boundtest.Lines("[console_scripts]\n", ""),
			boundtest.Counted("programs", "[console_scripts]\n", "p%d = a:b\n", "", ""),
			boundtest.Repeated("sections", "", "[console_scripts]\n", ""),
			boundtest.Repeated("a long module", "[console_scripts]\np = a", ".a", ":b\n"),
			boundtest.Repeated("no functions", "[console_scripts]\n", "p = a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a;\n", ""),
		),
		Parse: func(text []byte) error {
			_, err := parseScripts(bytes.NewReader(text))
			return err
		},
	})
}
