package clientconfig

import (
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/boundtest"
)

// TestBounds parses whole files: what Open finds, and every entry.
func TestBounds(t *testing.T) {
	entry := func(before, again, between, after string) func(name string) boundtest.Shape {
		return func(name string) boundtest.Shape {
			return boundtest.Counted(name, `{"servers":{"s":{`+before, again, between, after+"}}}")
		}
	}
	shapes := boundtest.Named(boundtest.Pick(boundtest.JSON(`{"servers":`, "}"), "deep objects", "a wide object", "many small objects", "twins", "long keys", "escapes"), " of entries")
	shapes = append(shapes, boundtest.Pick(boundtest.JSON(`{"servers":{"s":{"command":"x","env":`, "}}}"), "a wide object", "twins", "a long string", "deep lists", "open objects")...)
	shapes = append(shapes,
		boundtest.Counted("entries", `{"servers":{`, `"s%d":{"command":"x","args":["a"]}`, ",", "}}"),
		boundtest.Counted("inputs", `{"servers":{"s":{"command":"${input:i1}"}},"inputs":[`, `{"id":"i%d","type":"promptString"}`, ",", "]}"),
		entry(`"args":[`, `"a%d"`, ",", "]")("arguments"),
		entry(`"command":"x","args":["`, "${HOME}", "", `"]`)("variables"),
		entry(`"command":"x","args":["`, "${V%d:-${HOME}}", "", `"]`)("variables with defaults"),
		entry(`"command":"x","args":["`, "${input:i%d}", "", `"]`)("values that are not there"),
		entry(`"command":"x","args":["`, "${", "", `"]`)("variables that do not end"),
		entry(`"command":"x","args":["`, "${{ ", "", `"]`)("secrets that do not end"),
		entry(`"command":"x",`, `"kommand%d":1`, ",", "")("misspelled keys"),
		entry(`"url":"https://h/`, "%%41?", "", `"`)("an address"),
	)
	options := Options{Home: "/home/u", Dir: "/project", Getenv: func(string) string { return strings.Repeat("v", 100) }}
	boundtest.Run(t, boundtest.Parser{Row: "entries of a config file", Shapes: shapes, Parse: func(text []byte) error {
		f, err := Open(Location{Path: "/project/.vscode/mcp.json", Dialect: DialectOf("vscode"), rank: rankProject, Text: string(text)}, options)
		if err != nil {
			return err
		}
		for _, m := range f.Entries {
			err = f.Parse(m).Err // all of them together would take longer to print than to find
		}
		return err
	}})
}
