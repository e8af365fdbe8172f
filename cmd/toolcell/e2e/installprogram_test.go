package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// uvxProgram puts the binary where uvx has it: in an environment of its cache.
func (w *workshop) uvxProgram(t *testing.T) string {
	t.Helper()
	env := filepath.Join(w.home, ".cache/uv/archive-v0/Kq3")
	path := filepath.Join(env, "bin/toolcell")
	for _, dir := range []string{filepath.Dir(path), filepath.Join(env, "lib/python3.13/site-packages/toolcell-0.1.0.dist-info")} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(bin)
	if err := errors.Join(err, os.WriteFile(path, data, 0o755), os.WriteFile(filepath.Join(env, "pyvenv.cfg"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInstallFromACache: uvx runs the program from a cache, which the user may clean. Clients
// start a copy that stays, and a newer uvx replaces it.
//
//test:mainjob
func TestInstallFromACache(t *testing.T) {
	w := newWorkshop(t)
	program := w.uvxProgram(t)
	run := func(args ...string) string {
		t.Helper()
		out, err := w.shell(t, w.env, `shift; exec `+program+` "$@"`, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	copied := filepath.Join(w.home, ".local/share/toolcell/bin/toolcell")

	if out := run("install", "cursor", "--dry-run"); !strings.Contains(out, `"command": "`+copied+`"`) {
		t.Errorf("a dry run shows\n%s", out)
	}
	if _, err := os.Lstat(filepath.Dir(filepath.Dir(copied))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a dry run left something: %v", err)
	}

	out := run("install", "cursor")
	if !strings.Contains(out, "note: the program is at "+copied+" now, where clients start it; where messages say toolcell, type uvx toolcell\n") {
		t.Errorf("install says\n%s", out)
	}
	var file struct {
		MCPServers map[string]struct{ Command string } `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(w.home, ".cursor/mcp.json"))), &file); err != nil || file.MCPServers["toolcell"].Command != copied {
		t.Errorf("the entry starts %q, %v", file.MCPServers["toolcell"].Command, err)
	}
	if out := run("install", "cursor"); strings.Contains(out, "the program is at") || !strings.Contains(out, "already there") {
		t.Errorf("a second install says\n%s", out)
	}

	// The cache is cleaned; the copy works, and knows where it came from.
	if err := os.RemoveAll(filepath.Join(w.home, ".cache/uv")); err != nil {
		t.Fatal(err)
	}
	text, err := w.shell(t, w.env, `exec "$HOME/.local/share/toolcell/bin/toolcell" upgrade`).CombinedOutput()
	if want := " at " + copied + ", from uvx. To upgrade:\nuvx toolcell@latest upgrade\n"; err != nil || !strings.HasSuffix(string(text), want) {
		t.Errorf("upgrade: %v\n%s\nwant %s", err, text, want)
	}

	program = w.uvxProgram(t)
	for _, beside := range []struct{ version, want string }{
		{"0.0.1", copied + " is toolcell 0.1.0"},
		{"99.0", copied + " stays: it is toolcell 99.0, and this is 0.1.0"},
	} {
		version, want := beside.version, beside.want
		other := "#!/bin/sh\necho '{\"version\": \"" + version + "\"}'\n"
		if err := errors.Join(os.Remove(copied), os.WriteFile(copied, []byte(other), 0o755)); err != nil {
			t.Fatal(err)
		}
		if out := run("upgrade"); !strings.Contains(out, want) {
			t.Errorf("beside toolcell %s, upgrade says\n%s\nwant %s", version, out, want)
		}
		if replaced := read(t, copied) != other; replaced != (version == "0.0.1") {
			t.Errorf("toolcell %s is replaced: %t", version, replaced)
		}
	}
	if out := run("upgrade", "--force", "--json"); !strings.Contains(out, `"did": "replaced"`) || !strings.HasPrefix(read(t, copied), "\x7fELF") {
		t.Errorf("by force: %s", out)
	}
}
