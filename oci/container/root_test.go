package container

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestTopNames(t *testing.T) {
	makeRoot := func(files ...string) string {
		root := t.TempDir()
		for _, file := range files {
			name := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return root
	}
	usual := makeRoot("usr/bin/python3", "etc/hosts", "proc/x", "sys/x", "dev/x", "tmp/x", "workspace/x", "app.py")
	if err := os.Mkdir(filepath.Join(usual, "mnt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(usual, "all")); err != nil {
		t.Fatal(err)
	}
	var many []string
	for n := range maxTop + 1 {
		many = append(many, fmt.Sprintf("file%d", n))
	}
	for name, tt := range map[string]struct {
		root string
		want []string
	}{
		"usual":        {usual, []string{"app.py", "etc", "usr"}},
		"too many":     {makeRoot(many...), []string{"."}},
		"just enough":  {makeRoot(many[1:]...), slices.Sorted(slices.Values(many[1:]))},
		"with a colon": {makeRoot("a:..", "usr/x"), []string{"."}},
	} {
		if got, err := TopNames(tt.root); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tt.want)
		}
	}
	if _, err := TopNames("/does/not/exist"); err == nil {
		t.Error("a root that is not there: no error")
	}
}
