// Package mcptest has what tests of mcpproxy and its packages share.
package mcptest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
)

// Site makes a home and a project with these files, whose names begin with home/
// or project/, all trusted. They may name the variables TOKEN and DIR.
func Site(t *testing.T, files map[string]string) clientconfig.Options {
	t.Helper()
	home, dir := folders(t)
	for name, text := range files {
		WriteFile(t, filepath.Join(filepath.Dir(home), name), strings.ReplaceAll(text, "PROJECT", dir))
	}
	return options(home, dir, map[string]string{"TOKEN": "t0k3n", "DIR": "/opt"})
}

// options are those of discovery for a home and a project, all trusted.
func options(home, dir string, env map[string]string) clientconfig.Options {
	return clientconfig.Options{
		Home: home, Dir: dir, Getenv: func(name string) string { return env[name] },
		Trusted: func(string, string) clientconfig.TrustState { return clientconfig.Trusted },
	}
}

// folders makes a home and a project beside each other.
func folders(t *testing.T) (home, dir string) {
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
	return home, dir
}

// SiteOf makes a home and a project of the files below root, all trusted. HOME/ and
// "PROJECT" in them stand for the two. They may name some variables, and inputs.
func SiteOf(t *testing.T, root string) clientconfig.Options {
	t.Helper()
	home, dir := folders(t)
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
		WriteFile(t, filepath.Join(filepath.Dir(home), rel), replace.Replace(string(text)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	o := options(home, dir, map[string]string{"TOKEN": "t0k3n", "KEY": "k3y", "TOOLCELL_INPUT_BY_ENV": "by env"})
	o.Values = func(file string) map[string]string {
		if strings.HasSuffix(file, ".vscode/mcp.json") {
			return map[string]string{"given": "g1ven"}
		}
		return nil
	}
	return o
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
