package boundtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/memory"
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

// TestPartsHaveRoomInTheWhole of what is fetched.
func TestPartsHaveRoomInTheWhole(t *testing.T) {
	parts := map[string]int{}
	for _, r := range Rows {
		parts[r.Of] += r.Peak << 20
		if (r.AtOnce > 0) == (r.Room > 0 || r.Of != "") {
			t.Errorf("%q has both room and a number of calls at once, or neither", r.Name)
		}
	}
	for name, room := range map[string]int{"an image": memory.Image, "a layer": memory.Layer, "a wheel": memory.Wheel, "a tarball": memory.Tarball} {
		if parts[name] == 0 || parts[name] > room {
			t.Errorf("%s has %d MiB of room, and its parts take %d MiB", name, room>>20, parts[name]>>20)
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
