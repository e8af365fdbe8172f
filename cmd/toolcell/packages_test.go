package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPruneRemovesPackagesOfNpm that no server has used for the time, and leaves the others.
func TestPruneRemovesPackagesOfNpm(t *testing.T) {
	o, printed := newOptions(t)
	layers := filepath.Join(o.Settings.Dirs.Cache, "npm", "layers")
	for digit, unused := range map[string]time.Duration{"a": 40 * 24 * time.Hour, "b": time.Hour} {
		id := "sha256-" + strings.Repeat(digit, 64)
		if err := os.MkdirAll(filepath.Join(layers, id, "layer"), 0o755); err != nil {
			t.Fatal(err)
		}
		record := filepath.Join(layers, id, "layer.json")
		if err := os.WriteFile(record, fmt.Appendf(nil, `{"format": 1, "id": %q, "wanted": ["server-%s 1.0.0"], "packages": 1, "bytes": 2048, "files": 1}`, id, digit), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(record, time.Time{}, time.Now().Add(-unused)); err != nil {
			t.Fatal(err)
		}
	}
	o.Unused = "30"
	if err := packagesPrune(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got := printed(); !strings.Contains(got, "removed aaaaaaaaaaaa: server-a 1.0.0 of npm\nremoved 1 set, freed 2 KiB") || strings.Contains(got, "server-b") {
		t.Errorf("it says %q", got)
	}
	if left, err := os.ReadDir(layers); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}
