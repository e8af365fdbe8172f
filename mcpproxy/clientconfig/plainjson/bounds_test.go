package plainjson_test

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/plainjson"
)

func TestBounds(t *testing.T) {
	convert := func(file string) func([]byte) error {
		return func(text []byte) error {
			_, err := plainjson.Convert(file, text)
			return err
		}
	}
	comments := []boundtest.Shape{
		boundtest.Repeated("comments", "", "// c\n", "1"),
		boundtest.Repeated("a comment", "/*", "*", "*/1"),
		boundtest.Repeated("comments that do not end", "", "/*", ""),
		boundtest.Repeated("trailing commas", "[", "[1,],", "]"),
	}
	boundtest.Run(t,
		boundtest.Parser{Row: "config file, TOML", Shapes: boundtest.TOML("", ""), Parse: convert("a.toml")},
		boundtest.Parser{Row: "config file, YAML", Shapes: append(boundtest.YAML(),
			boundtest.Shape{Name: "aliases of a long text", Make: func(n int) []byte {
				return []byte("a: &a \"" + strings.Repeat("s", n/2) + "\"\nb: [*a" + strings.Repeat(",*a", n/2/3-10) + "]\n")
			}}), Parse: convert("a.yaml")},
		boundtest.Parser{Row: "config file, JSON", Shapes: append(boundtest.JSON("// c\n", ""), comments...), Parse: convert("a.json")},
	)
}
