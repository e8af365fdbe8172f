package state

import (
	"os"
	"path/filepath"
	"testing"
)

// TestKilledWriterLeavesNothingForEver: what a process left that was killed
// while it wrote may hold secrets, and is gone with the next change.
func TestKilledWriterLeavesNothingForEver(t *testing.T) {
	dir := t.TempDir()
	file := File[string]{filepath.Join(dir, "values.json")}
	if err := os.WriteFile(file.Path+".new", []byte(`{"a":"SECRET, and much longer than what comes`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := file.Change(func(all map[string]string) { all["a"] = "1" }); err != nil {
		t.Fatal(err)
	}
	if all, err := file.Read(); err != nil || all["a"] != "1" || len(all) != 1 {
		t.Errorf("read %v, %v", all, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 { // the file and its lock
		t.Errorf("%v, %v", left, err)
	}
	if info, err := os.Stat(file.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
