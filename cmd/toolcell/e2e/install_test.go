package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An installable client is a row of install --list.
type installable struct{ Client, Title, File string }

// clients gives the clients that the binary knows, with their files in the
// workshop.
func (w *workshop) clients(t *testing.T) (all []installable) {
	t.Helper()
	out, errs, code := w.run(t, w.env, "install", "--list", "--json")
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != 0 || len(all) < 9 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out, errs)
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInstallWritesEveryDialect: each client's entry is as the golden file has it,
// toolcell itself reads it there as its own, a second install changes nothing, and
// undo leaves no file where there was none. UPDATE_GOLDEN=1 writes the golden
// file anew, to be read over.
//
//test:mainjob
func TestInstallWritesEveryDialect(t *testing.T) {
	w := newWorkshop(t)
	var golden strings.Builder
	for _, row := range w.clients(t) {
		out, errs, code := w.run(t, w.env, "install", row.Client, "--print", "--env", "TOOLCELL_TIMEOUT=60")
		if code != 0 {
			t.Fatalf("%s: exit %d\n%s", row.Client, code, errs)
		}
		file := strings.TrimPrefix(row.File, w.home+"/")
		fmt.Fprintf(&golden, "== %s: %s\n%s\n", row.Client, file, strings.TrimSpace(strings.ReplaceAll(out, bin, "/usr/bin/toolcell")))

		w.must(t, "added to "+row.Title, "install", row.Client, "--env", "TOOLCELL_TIMEOUT=60")
		if got := read(t, row.File); got != out {
			t.Errorf("%s: written is\n%s\nand printed was\n%s", row.Client, got, out)
		}
		if info, err := os.Stat(row.File); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", row.Client, info.Mode(), err)
		}
		w.must(t, "already there", "install", row.Client)
		if got := read(t, row.File); got != out {
			t.Errorf("%s: the second time made it\n%s", row.Client, got)
		}
		list, _, _ := w.run(t, w.env, "servers", "list")
		if !strings.Contains(list, row.File) || strings.Count(list, "this program itself") != 1 || strings.Count(list, "\n") != 2 {
			t.Errorf("%s: toolcell does not see itself:\n%s", row.Client, list)
		}
		w.must(t, "removed: "+row.File, "install", row.Client, "--undo")
		if _, err := os.Stat(row.File); !os.IsNotExist(err) {
			t.Errorf("%s: the file is still there: %v", row.Client, err)
		}
	}
	const file = "testdata/install.golden"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, file); golden.String() != want {
		t.Errorf("got\n%s\nwant\n%s", golden.String(), want)
	}
}

// lived are config files as users have them, in every format.
var lived = map[string]struct{ file, before, after string }{
	"zed": {"home/.config/zed/settings.json", `// Zed settings
{
	"theme": "One Dark", // of course
	"context_servers": {
		// "old": {},
		"docs": { "source": "custom", "command": "docs", "args": [] }, // mine
	},
	/* the end */
}
`, `// Zed settings
{
	"theme": "One Dark", // of course
	"context_servers": {
		// "old": {},
		"docs": { "source": "custom", "command": "docs", "args": [] }, // mine
		"toolcell": {
			"source": "custom",
			"command": "BIN",
			"args": ["serve"]
		},
	},
	/* the end */
}
`},
	"codex":    {"home/.codex/config.toml", "# mine\nmodel = \"o\"\n\n[mcp_servers.docs]\ncommand = \"docs\" # local\n\n[tui]\nnotifications = true", "# mine\nmodel = \"o\"\n\n[mcp_servers.docs]\ncommand = \"docs\" # local\n\n[tui]\nnotifications = true\n\n[mcp_servers.toolcell]\ncommand = \"BIN\"\nargs = [\"serve\"]\ntool_timeout_sec = 150\n"},
	"goose":    {"home/.config/goose/config.yaml", "# mine\nextensions:\n  docs: # local\n    type: stdio\n    cmd: docs\n\nGOOSE_MODEL: x\n", "# mine\nextensions:\n  docs: # local\n    type: stdio\n    cmd: docs\n  toolcell:\n    name: \"toolcell\"\n    type: \"stdio\"\n    cmd: \"BIN\"\n    args: [\"serve\"]\n    enabled: true\n    timeout: 150\n\nGOOSE_MODEL: x\n"},
	"opencode": {"home/.config/opencode/opencode.jsonc", "{\r\n  \"mcp\": {}, // none yet\r\n  \"theme\": \"x\"\r\n}\r\n", "{\r\n  \"mcp\": {\r\n    \"toolcell\": {\r\n      \"type\": \"local\",\r\n      \"command\": [\"BIN\", \"serve\"],\r\n      \"enabled\": true\r\n    }\r\n  }, // none yet\r\n  \"theme\": \"x\"\r\n}\r\n"},
}

// TestInstallKeepsWhatIsThere: comments, order, line ends, mode and links stay, a
// backup is kept, and undo is exact, or takes just the entry out of what the
// user changed since.
//
//test:mainjob
func TestInstallKeepsWhatIsThere(t *testing.T) {
	for client, tt := range lived {
		t.Run(client, func(t *testing.T) {
			w := newWorkshop(t)
			file := w.put(t, tt.file, tt.before)
			real := filepath.Join(filepath.Dir(file), "dotfiles")
			for _, err := range []error{os.Rename(file, real), os.Symlink("dotfiles", file), os.Chmod(real, 0o640)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			want := strings.ReplaceAll(tt.after, "BIN", bin)
			out, errs, code := w.run(t, w.env, "install", client, "--dry-run")
			if code != 0 || !strings.Contains(out, "+") || read(t, file) != tt.before {
				t.Errorf("a dry run: exit %d\n%s%s", code, out, errs)
			}
			w.must(t, file+".before-toolcell", "install", client)
			if got := read(t, file); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			info, err := os.Lstat(file)
			if target, _ := os.Stat(file); err != nil || info.Mode()&os.ModeSymlink == 0 || target.Mode().Perm() != 0o640 {
				t.Errorf("the link or the mode is lost: %v, %v", info, err)
			}
			if got := read(t, file+".before-toolcell"); got != tt.before {
				t.Errorf("the backup is\n%s", got)
			}
			w.must(t, "restored as it was before", "uninstall", client)
			if got := read(t, file); got != tt.before {
				t.Errorf("undo made it\n%s", got)
			}
			w.must(t, "added", "install", client)
			changed := strings.Replace(want, "mine", "yours", 1)
			if changed == want {
				changed = strings.Replace(want, "theme", "look", 1)
			}
			w.put(t, tt.file, changed)
			w.must(t, "taken out", "install", client, "--undo")
			if got := read(t, file); strings.Contains(got, "toolcell") || !strings.Contains(got, "yours") && !strings.Contains(got, "look") {
				t.Errorf("undo after a change made it\n%s", got)
			}
			w.must(t, "nothing to do", "uninstall", client)
		})
	}
}

// TestInstallRefusesWhatItCannotRead: such a file is not touched, and nothing is
// left beside it.
func TestInstallRefusesWhatItCannotRead(t *testing.T) {
	for name, tt := range map[string]struct{ client, file, text, want string }{
		"broken JSON":   {"cursor", "home/.cursor/mcp.json", `{"mcpServers": {`, "is not JSON"},
		"broken TOML":   {"codex", "home/.codex/config.toml", "a = [\n", "is not TOML"},
		"a list":        {"cursor", "home/.cursor/mcp.json", `{"mcpServers": []}`, "not an object"},
		"twice":         {"cursor", "home/.cursor/mcp.json", `{"mcpServers": {}, "mcpServers": {}}`, "twice"},
		"an inline one": {"codex", "home/.codex/config.toml", "mcp_servers = { a = { command = \"x\" } }\n", "write it as a table"},
		"another's":     {"cursor", "home/.cursor/mcp.json", `{"mcpServers": {"toolcell": {"command": "bash"}}}`, "--name"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkshop(t)
			file := w.put(t, tt.file, tt.text)
			for _, args := range [][]string{{"install", tt.client}, {"install", tt.client, "--move-servers", "--yes"}} {
				out, errs, code := w.run(t, w.env, args...)
				if code != 1 || !strings.HasPrefix(errs, "toolcell: ") || !strings.Contains(errs, tt.want) || !strings.Contains(errs, file) {
					t.Errorf("%v: exit %d, want %q\n%s%s", args, code, tt.want, out, errs)
				}
			}
			if got := read(t, file); got != tt.text {
				t.Errorf("it was changed to\n%s", got)
			}
			if beside, _ := os.ReadDir(filepath.Dir(file)); len(beside) != 1 {
				t.Errorf("left beside it: %v", beside)
			}
		})
	}
	w := newWorkshop(t)
	link := filepath.Join(w.home, ".claude.json")
	if err := os.Symlink("/no/such/file", link); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := w.run(t, w.env, "install", "claude-code"); code != 1 || !strings.Contains(errs, "leads nowhere") {
		t.Errorf("a dangling link: exit %d\n%s", code, errs)
	}
}

// TestInstallFromGoRunIsRefused: the path is gone when the client starts it.
func TestInstallFromGoRunIsRefused(t *testing.T) {
	w := newWorkshop(t)
	there := filepath.Join(filepath.Dir(w.home), "go-build123/b001/exe/toolcell")
	script := `mkdir -p "$(dirname ` + there + `)" && cp "$1" ` + there + ` && shift && exec ` + there + ` "$@"`
	out, err := w.shell(t, w.env, script, "install", "cursor").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "make install") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestInstallBringsAnEntryUpToDate(t *testing.T) {
	w := newWorkshop(t)
	file := w.put(t, "home/.cursor/mcp.json", `{"mcpServers": {"py": {"command": "/gone/toolcell", /* mine */ "args": ["serve", "--timeout", "9"], "env": {"A": "b"}}}}`)
	w.must(t, "was: /gone/toolcell", "install", "cursor", "--env", "TOOLCELL_MEMORY=1g")
	want := `{"mcpServers": {"py": {"command": "` + bin + `", /* mine */ "args": ["serve", "--timeout", "9"], "env": {"A": "b",`
	if got := read(t, file); !strings.HasPrefix(got, want) || !strings.Contains(got, `"TOOLCELL_MEMORY": "1g"`) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	w.must(t, "already there", "install", "cursor", "--env", "TOOLCELL_MEMORY=1g")
	w.must(t, `already there: "py"`, "install", "cursor", "--name", "second", "--env", "TOOLCELL_MEMORY=1g")
	w.must(t, `Cursor starts toolcell already, as "py": no entry "a b" was added`, "install", "cursor", "--name", "a b")
	w.must(t, `"py"`, "install", "cursor", "--name", "py")

	file = w.put(t, "home/.codex/config.toml", "[mcp_servers.toolcell]\ncommand = '/gone/toolcell' # mine\nargs = ['serve']\n[mcp_servers.toolcell.env]\nA = 'b'\n")
	w.must(t, "updated", "install", "codex", "--env", "TOOLCELL_MEMORY=1g")
	if want, got := "[mcp_servers.toolcell]\ncommand = \""+bin+"\" # mine\nargs = ['serve']\n[mcp_servers.toolcell.env]\nA = 'b'\nTOOLCELL_MEMORY = \"1g\"\n", read(t, file); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}

	w.must(t, "added", "install", "cursor", "--project")
	if _, err := os.Stat(filepath.Join(w.project, ".cursor/mcp.json")); err != nil {
		t.Error(err)
	}
	w.must(t, "removed", "uninstall", "cursor", "--project")
}
