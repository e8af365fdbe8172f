package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSourcesOfMounts are relative to the working directory, or to the home directory.
func TestSourcesOfMounts(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	for _, dir := range []string{filepath.Join(home, "notes"), filepath.Join(work, "src")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Chdir(filepath.Join(work, "src"))
	for source, want := range map[string]string{
		".":                   work + "/src",
		"..":                  work,
		"../src":              work + "/src",
		"~/notes":             home + "/notes",
		work + "/src/../src/": work + "/src",
	} {
		m, err := parseMount(source + ":/data:rw")
		if err != nil || m.Source != want || m.Target != "/data" || !m.Writable {
			t.Errorf("%s: %+v, %v; want %s", source, m, err, want)
		}
	}
	for text, want := range map[string]string{
		":/data":      "there is no SOURCE",
		".:data":      "write an absolute path in the sandbox, such as /data",
		"./no:/data":  work + "/src/no does not exist",
		"~/no:/data":  home + "/no does not exist",
		"~root:/data": work + "/src/~root does not exist",
	} {
		if _, err := parseMount(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if err := Check("TOOLCELL_MOUNTS", ".:/data"); err == nil || !strings.Contains(err.Error(), "write an absolute path") {
		t.Errorf("in a client's file: %v", err)
	}
	if err := Check("TOOLCELL_MOUNTS", work+":/data,~/notes:/notes"); err != nil {
		t.Error(err)
	}
}
