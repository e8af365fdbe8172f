package hints

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

func TestBounds(t *testing.T) {
	shapes := boundtest.Pick(boundtest.Text("", ""), "one word", "words", "lines", "quotes", "bytes that are not UTF-8")
	for name, again := range map[string]string{
		"imports": "import a, ", "installers": "pip install -", "commands": "uv pip install 'a' ", "shells": "sh: 1: ",
		"frames": "  File \"<user_tools.a>\", line 1, in f\n    open(a, ", "plotly": "plotly.show(", "closing brackets": "plotly)]",
		"letters before a call": "a(\"", "failed commands": "CalledProcessError: Command '", "causes": "ImportError: ",
	} {
		shapes = append(shapes, boundtest.Repeated(name, "", again, ""))
	}
	lookup := func(name string) (config.Server, error) { return config.Server{}, fmt.Errorf("no server %.40q", name) }
	boundtest.Run(t, boundtest.Parser{Row: "output that hints look at", Shapes: shapes, Parse: func(text []byte) error {
		lines := strings.Split(string(text), "\n")
		return errors.New(For(Case{Failed: true, Error: string(text), Stderr: lines, Stdout: lines, Code: string(text), Lookup: lookup}))
	}})
}
