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
		other := w.otherVersion(t, version)
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
	if out := run("install", "codex"); !strings.Contains(out, copied+" stays: it is toolcell 99.0") {
		t.Errorf("an older version that adds itself to another client says\n%s", out)
	}
	if out := run("upgrade", "--force", "--json"); !strings.Contains(out, `"did": "replaced"`) || !strings.HasPrefix(read(t, copied), "\x7fELF") {
		t.Errorf("by force: %s", out)
	}
}

// otherVersion returns a program that says it is another version, as the real one says it.
func (w *workshop) otherVersion(t *testing.T, version string) string {
	t.Helper()
	said, err := w.shell(t, w.env, `shift; exec `+bin+` version --json`).Output()
	var rows []map[string]string
	if err := errors.Join(err, json.Unmarshal(said, &rows)); err != nil || len(rows) != 1 {
		t.Fatalf("%v: %s", err, said)
	}
	rows[0]["version"] = version
	text, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	return "#!/bin/sh\ncat <<'end'\n" + string(text) + "\nend\n"
}

// TestInstallKeepsANewerProgram that an entry starts, whichever way it was installed.
func TestInstallKeepsANewerProgram(t *testing.T) {
	w := newWorkshop(t)
	program := w.uvxProgram(t)
	there := filepath.Join(w.home, ".local/bin/toolcell")
	file := filepath.Join(w.home, ".cursor/mcp.json")
	entry := `{"mcpServers": {"toolcell": {"command": "` + there + `", "args": ["serve"]}}}`
	copied := filepath.Join(w.home, ".local/share/toolcell/bin/toolcell")
	for _, c := range []struct {
		version string
		args    []string
		says    string
		starts  string
	}{
		{"99.0", []string{"--dry-run"}, "note: Cursor still starts " + there + ": it is toolcell 99.0", there},
		{"99.0", nil, "note: Cursor still starts " + there + ": it is toolcell 99.0", there},
		{"99.0", []string{"--env", "TOOLCELL_TIMEOUT=7"}, "TOOLCELL_TIMEOUT", there},
		{"99.0", []string{"--force"}, "was: " + there, copied},
		{"0.0.1", nil, "was: " + there, copied},
	} {
		for _, path := range []string{there, file} {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(os.WriteFile(there, []byte(w.otherVersion(t, c.version)), 0o755), os.WriteFile(file, []byte(entry), 0o644)); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"install", "cursor"}, c.args...)
		out, err := w.shell(t, w.env, `shift; exec `+program+` "$@"`, args...).CombinedOutput()
		text := string(out) + read(t, file)
		if err != nil || !strings.Contains(text, c.says) || !strings.Contains(read(t, file), `"command": "`+c.starts+`"`) {
			t.Errorf("beside %s, %q: %v\n%s\nwant %s", c.version, args, err, text, c.says)
		}
		if _, err := os.Stat(copied); (err == nil) != (c.starts == copied) {
			t.Errorf("beside %s, %q: a copy is there: %t", c.version, args, err == nil)
		}
		_ = os.RemoveAll(filepath.Dir(filepath.Dir(copied)))
	}
}

// TestInstallStartsNoProgramOfAProject to ask for its version.
func TestInstallStartsNoProgramOfAProject(t *testing.T) {
	w := newWorkshop(t)
	project := filepath.Join(w.home, "project")
	there, started := filepath.Join(project, "toolcell"), filepath.Join(w.home, "started")
	for _, c := range []struct{ file, command, flag string }{
		{filepath.Join(project, ".cursor/mcp.json"), there, " --project"},
		{filepath.Join(w.home, ".cursor/mcp.json"), "./toolcell", ""},
	} {
		if err := os.MkdirAll(filepath.Dir(c.file), 0o755); err != nil {
			t.Fatal(err)
		}
		entry := `{"mcpServers": {"toolcell": {"command": "` + c.command + `", "args": ["serve"]}}}`
		program := "#!/bin/sh\ntouch " + started + "\n"
		if err := errors.Join(os.MkdirAll(project, 0o755), os.WriteFile(there, []byte(program), 0o755), os.WriteFile(c.file, []byte(entry), 0o644)); err != nil {
			t.Fatal(err)
		}
		out, err := w.shell(t, w.env, "cd "+project+" && exec "+w.uvxProgram(t)+" install cursor"+c.flag).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "updated in Cursor") {
			t.Errorf("%s: %v\n%s", c.file, err, out)
		}
		if _, err := os.Stat(started); err == nil {
			t.Errorf("%s has a program started", c.file)
		}
	}
}
