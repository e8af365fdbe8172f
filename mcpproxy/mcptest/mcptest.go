// Package mcptest has what tests of mcpproxy and its packages share.
package mcptest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Site makes a home and a project with these files, whose names begin with home/
// or project/.
func Site(t *testing.T, files map[string]string) (home, dir string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, dir = filepath.Join(root, "home"), filepath.Join(root, "project")
	for _, folder := range []string{home, dir} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "PROJECT", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home, dir
}

// SiteEnv gives the variables of the environment that files of a Site may name.
func SiteEnv(name string) string {
	return map[string]string{"TOKEN": "t0k3n", "DIR": "/opt"}[name]
}

// SiteOf makes a home and a project of the files below root. HOME/ and "PROJECT"
// in them stand for the two.
func SiteOf(t *testing.T, root string) (home, dir string) {
	t.Helper()
	home, dir = Site(t, nil)
	replace := strings.NewReplacer("HOME/", home+"/", `"PROJECT"`, `"`+dir+`"`)
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "want.json" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		to := filepath.Join(filepath.Dir(home), rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, []byte(replace.Replace(string(text))), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return home, dir
}

// SamplesEnv gives the variables of the environment that files of a SiteOf may
// name.
func SamplesEnv(name string) string {
	return map[string]string{"TOKEN": "t0k3n", "KEY": "k3y", "MCP_BRIDGE_INPUT_BY_ENV": "by env"}[name]
}

// SamplesValues gives what the user set for the inputs of a file of a SiteOf.
func SamplesValues(file string) map[string]string {
	if strings.HasSuffix(file, ".vscode/mcp.json") {
		return map[string]string{"given": "g1ven"}
	}
	return nil
}

// WriteFile writes a file, and the folders that lead to it.
func WriteFile(t testing.TB, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// WantError checks that there is an error whose text has all of these parts.
func WantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there was no error")
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not contain %q", err, part)
		}
	}
}
