package boundtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTableOfParsers keeps rows, entries and docs/security.md together.
func TestTableOfParsers(t *testing.T) {
	doc, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(doc), "\n\n"+Table()+"\n") {
		t.Errorf("docs/security.md does not have the table of parsers; it must be\n\n%s", Table())
	}
	measured := entries(t)
	for _, r := range Rows {
		if i := slices.Index(measured, r.Name); i < 0 {
			t.Errorf("nothing measures %q: add it to the TestBounds of its package", r.Name)
		}
	}
	for _, name := range measured {
		if _, ok := find(name); !ok {
			t.Errorf("%q is measured and has no row in rows.go", name)
		}
	}
}

// entries returns the rows that the tests of this tree measure.
func entries(t *testing.T) (names []string) {
	row := regexp.MustCompile(`boundtest\.Parser\{\s*Row:\s+"([^"]+)"`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "bounds_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range row.FindAllStringSubmatch(string(source), -1) {
			names = append(names, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
