package runner

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
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
	folders := []string{path, filepath.Join(path, "__pycache__")}
	for _, folder := range folders {
		if err := os.Chmod(folder, 0o700); err != nil { // as a strict umask makes it
			t.Fatal(err)
		}
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
	for _, folder := range folders {
		if info, err := os.Lstat(folder); err != nil || info.Mode() != os.ModeDir|dirMode {
			t.Errorf("%s: %v, %v", folder, info, err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files beside the package", len(left)-1)
	}
}

// TestWriteLeavesAloneWhatIsCorrect: sandboxes that run have it open.
func TestWriteLeavesAloneWhatIsCorrect(t *testing.T) {
	dir := t.TempDir()
	before := map[string]os.FileInfo{}
	for range 2 {
		path, err := Write(dir)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "-e3b0c44298fc1c14") {
			t.Errorf("%s has the digest of nothing: another version would share it", path)
		}
		for name := range Files() {
			info, err := os.Lstat(filepath.Join(path, name))
			if err != nil {
				t.Fatal(err)
			}
			if old := before[name]; old != nil && !os.SameFile(old, info) {
				t.Errorf("%s was written again", name)
			}
			before[name] = info
		}
	}
}

func TestWriteSaysThatItCannot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if path, err := Write(file); err == nil || path != "" || !strings.Contains(err.Error(), "writing the runner: ") {
		t.Errorf("got %q, %v", path, err)
	}
}
