package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// helpOf returns what --help prints where there is no terminal.
func helpOf(t *testing.T, of any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "help")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	printHelp(out, of)
	out.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHelp of every command fits 80 columns, has its own flags before the settings, and
// two examples, which name flags that there are.
func TestHelp(t *testing.T) {
	app := testApp()
	checkHelp(t, "toolcell", helpOf(t, app))
	eachCommand(app, func(words []string, c *cli.Command) {
		if c.Hidden {
			return
		}
		path := strings.Join(words, " ")
		c.HelpName = path
		text := helpOf(t, c)
		checkHelp(t, path, text)
		set := strings.Index(text, "\nSETTINGS")
		for _, f := range c.Flags {
			at := strings.Index(text, "\n  "+dashed(f.Names()[0]))
			if at < 0 || set >= 0 && isSetting(f) != (at > set) {
				t.Errorf("%s: %s stands at %d, the settings begin at %d", path, f.Names()[0], at, set)
			}
		}
		if len(examples[path]) < 2 {
			t.Errorf("%s has %d examples", path, len(examples[path]))
		}
		for _, e := range examples[path] {
			typed, isOurs := strings.CutPrefix(e, "toolcell ")
			if !isOurs {
				continue // a shell's
			}
			typed = strings.FieldsFunc(typed, func(r rune) bool { return strings.ContainsRune("|<>'", r) })[0]
			if _, err := findCommand(app, append([]string{"toolcell"}, strings.Fields(typed)...)).flagsFirst(); err != nil && !strings.HasSuffix(err.Error(), "needs a value") {
				t.Errorf("%s: %v", e, err)
			}
		}
	})
}

func checkHelp(t *testing.T, path, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(line) > 81 && !strings.HasPrefix(line, "  toolcell ") {
			t.Errorf("%s: a line of %d columns: %s", path, len(line), line)
		}
	}
	for _, not := range []string{"default: false", "`", "a NUMBER", " VALUE"} {
		if strings.Contains(text, not) {
			t.Errorf("%s: %q in the help:\n%s", path, not, text)
		}
	}
}
