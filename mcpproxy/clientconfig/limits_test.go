package clientconfig

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestAConfigNamesSoManyFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(path, []byte("A=b"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &File{Reads: map[string][]byte{}}
	for i := range maxNamedFiles - 1 {
		f.Reads[fmt.Sprint(i)] = nil
	}
	for range 2 {
		if data, err := f.read(path); err != nil || string(data) != "A=b" || len(f.Reads) != maxNamedFiles {
			t.Errorf("the last: %q of %d files, %v", data, len(f.Reads), err)
		}
	}
	_, err := f.read(path + "2")
	want := fmt.Sprintf("is one of more than %d that the config names", maxNamedFiles)
	if err == nil || err.Error() != want || len(f.Reads) != maxNamedFiles {
		t.Errorf("one more: %d files, %v, want %s", len(f.Reads), err, want)
	}
}

func TestAFolderHoldsSoManyFiles(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "MCPs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(i int) string { return filepath.Join(dir, fmt.Sprintf("%05d.json", i)) }
	write := func(i int, text string) {
		t.Helper()
		if err := os.WriteFile(file(i), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(0, `{"mcpServers":{}}`)
	for i := 1; i < maxConfigFiles-1; i++ {
		if err := os.Link(file(0), file(i)); err != nil { // sooner than another file
			t.Fatal(err)
		}
	}
	write(maxConfigFiles-1, `{"command":"last"}`)
	o := Options{Home: home, Getenv: func(string) string { return "" }}
	if c := Discover(o); len(c.Servers) != 1 || len(c.Problems) != 0 {
		t.Errorf("the most: %+v, %.300v", c.Servers, c.Problems)
	}
	write(maxConfigFiles, `{"command":"more"}`)
	c := Discover(o)
	if len(c.Servers) != 1 || c.Servers[0].Command != "last" {
		t.Errorf("one more: %+v", c.Servers)
	}
	want := fmt.Sprintf("holds more than %d files; the rest is left out", maxConfigFiles)
	if len(c.Problems) != 1 || c.Problems[0].Source != dir || c.Problems[0].Reason != want {
		t.Errorf("one more: %.300v, want %s", c.Problems, want)
	}
}
