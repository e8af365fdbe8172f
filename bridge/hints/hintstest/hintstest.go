// Package hintstest reads the tables of hints in docs/results.md, for tests that
// compare them with what the program says.
package hintstest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A Row is one line of a table: code, in words what else it needs, and the hint
// that it leads to.
type Row struct{ Code, Words, Hint string }

// Which table.
const (
	Anywhere  = 0
	InSandbox = 1 // what the code does is harmless in a sandbox only
)

var row = regexp.MustCompile("^\\| `(.+?)`(.*?) \\| `(.+)` \\|$")

// Table returns the rows of a table. root is the way to the top of the checkout.
func Table(t testing.TB, root string, table int) []Row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text2, _ := strings.Cut(string(text), "\n## Hints\n")
	text2, _, _ = strings.Cut(text2, "\n## ")
	const head = "| code | hint |\n|---|---|\n"
	tables := strings.Split(text2, head)[1:]
	if len(tables) != 2 {
		t.Fatalf("docs/results.md has %d tables of hints", len(tables))
	}
	var rows []Row
	for line := range strings.Lines(tables[table]) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		cells := row.FindStringSubmatch(strings.TrimSpace(line))
		if cells == nil {
			t.Fatalf("docs/results.md: a row that is none: %s", line)
		}
		rows = append(rows, Row{cells[1], strings.TrimPrefix(cells[2], ", "), cells[3]})
	}
	return rows
}
