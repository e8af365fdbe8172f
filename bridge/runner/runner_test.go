package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestEmbeddedFilesAreThoseOfTheFolder(t *testing.T) {
	found, err := os.ReadDir("toolcell_runner")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, f := range found {
		if f.Name() == "__pycache__" {
			continue
		}
		count++
		content, err := os.ReadFile(filepath.Join("toolcell_runner", f.Name()))
		if err != nil || !bytes.Equal(content, Files()[f.Name()]) {
			t.Errorf("%s is not embedded: %v", f.Name(), err)
		}
	}
	if count != len(Files()) || Files()["__init__.py"] == nil || Files()["__main__.py"] == nil {
		t.Errorf("%d files in the folder, %d embedded", count, len(Files()))
	}
}

func TestWriteMendsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	path, err := Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, "host.py")); err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(path, "values.py")
	if err := os.Chmod(changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(changed, []byte("print('something else')"), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := Write(dir); err != nil || again != path {
		t.Fatalf("got %s, %v; want %s", again, err, path)
	}
	for name, content := range Files() {
		file := filepath.Join(path, name)
		info, err := os.Lstat(file)
		if err != nil || info.Mode() != fileMode {
			t.Errorf("%s: %v, %v", name, info, err)
			continue
		}
		if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, content) {
			t.Errorf("%s has another content: %v", name, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files beside the package", len(left)-1)
	}
}
