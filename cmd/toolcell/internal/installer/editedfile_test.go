package installer

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// edited opens a file to be changed and gives it a new text, which is not written.
func edited(t *testing.T, path, text string) *editedFile {
	t.Helper()
	f, err := openEdited(path)
	if err != nil {
		t.Fatal(err)
	}
	f.after = []byte(text)
	return f
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// hasFile checks a file's text and mode.
func hasFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	body, err1 := os.ReadFile(path)
	info, err2 := os.Lstat(path)
	if err1 != nil || err2 != nil || string(body) != text || info.Mode() != mode {
		t.Errorf("%s: %q, %v, %v; want %q", path, body, info, err1, text)
	}
}

func TestEditedFileKeepsItsModeAndItsPlace(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "dotfiles", "config.json"), filepath.Join(dir, "config.json")
	if err := os.Mkdir(filepath.Dir(real), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, real, "old", 0o640)
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if err := edited(t, link, "new").write(); err != nil {
		t.Fatal(err)
	}
	hasFile(t, real, "new", 0o640)
	if to, err := os.Readlink(link); err != nil || to != real {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(real), ".*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestNewFileIsForItsOwner: what is in it may be secret.
func TestNewFileIsForItsOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "folder", "config.json")
	f := edited(t, path, "new")
	if err := f.write(); err != nil {
		t.Fatal(err)
	}
	hasFile(t, path, "new", 0o600)
	if err := f.remove(); err != nil {
		t.Error(err)
	}
}

// TestFileOfARunningClientIsLeftAlone: a client that writes between our reading
// and our writing must not lose what it wrote.
func TestFileOfARunningClientIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.json")
	writeFile(t, path, "old", 0o600)
	f := edited(t, path, "ours")
	writeFile(t, path, "theirs", 0o600)
	if err := f.write(); err == nil || !strings.Contains(err.Error(), "changed in the meantime") {
		t.Errorf("got %v", err)
	}
	hasFile(t, path, "theirs", 0o600)
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("left: %v", files)
	}
}

func TestUnchangedFileIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	writeFile(t, path, "same", 0o400)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f := edited(t, path, "same")
	if err := f.write(); err != nil || f.changed() {
		t.Errorf("changed: %v, %v", f.changed(), err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("it is another file, %v", err)
	}
}

func TestOnlyRegularFilesAreEdited(t *testing.T) {
	dir := t.TempDir()
	for name, create := range map[string]func(path string) error{
		"pipe":         func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder":       func(path string) error { return os.Mkdir(path, 0o700) },
		"link nowhere": func(path string) error { return os.Symlink(filepath.Join(dir, "missing"), path) },
		"too large":    func(path string) error { return os.WriteFile(path, make([]byte, maxEdited+1), 0o600) },
	} {
		path := filepath.Join(dir, name)
		if err := create(path); err != nil {
			t.Fatal(err)
		}
		if _, err := openEdited(path); err == nil {
			t.Errorf("%s: it was opened", name)
		}
	}
}

func TestBackupHasTheTextAsItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	if kept, err := edited(t, path, "new").backup(); kept != "" || err != nil {
		t.Errorf("of no file: %q, %v", kept, err)
	}
	writeFile(t, path, "old", 0o640)
	for _, text := range []string{"new", "newer"} {
		f := edited(t, path, text)
		kept, err := f.backup()
		if err != nil {
			t.Fatal(err)
		}
		hasFile(t, kept, string(f.before), 0o640)
		if err := f.write(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSecretsAreHidden(t *testing.T) {
	secret := "a \"quoted\"\nsecret"
	text := fmt.Sprintf("plain %s, JSON %q", secret, secret)
	if got, want := secretsHider([]string{secret}).Replace(text), `plain …, JSON "…"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestWhatCannotBeWrittenIsSaid in words, without the names of temporary files. Not even
// root makes files in /sys.
func TestWhatCannotBeWrittenIsSaid(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Symlink("/sys/kernel", filepath.Join(home, ".cursor")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(home, ".cursor/mcp.json"):     "cannot write to ~/.cursor: ",
		filepath.Join(home, ".cursor/new/mcp.json"): "cannot make the folder ~/.cursor/new: ",
		"/sys/kernel/mcp.json":                      "cannot write to /sys/kernel: ",
	} {
		f := &editedFile{path: path, real: path, isNew: true, after: []byte("new")}
		err := f.write()
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "toolcell-") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := openEdited(filepath.Join(home, "file/mcp.json")); err == nil || err.Error() != "cannot read ~/file/mcp.json: not a directory" {
		t.Errorf("below a file: %v", err)
	}
}
