package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/bridge/consent/inbox"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/footprint"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig/edit"
)

// putFile writes a file, with the folders above it.
func putFile(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEntriesSayWhatTheyStart: this program, wherever a copy of it is, another version, or one that
// is not there. Those in files of projects are among them, as purge takes these out, too.
func TestEntriesSayWhatTheyStart(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "COPILOT_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", "/nowhere") // no programs of clients
	self := putFile(t, home+"/a/toolcell", "this", 0o755)
	same := putFile(t, home+"/b/toolcell", "this", 0o755)
	other := putFile(t, home+"/c/toolcell", "older", 0o755)
	putFile(t, home+"/.cursor/mcp.json", `{"mcpServers": {"toolcell": {"command": "`+same+`", "args": ["serve"]}}}`, 0o644)
	putFile(t, home+"/.gemini/settings.json", `{"mcpServers": {"python": {"command": "`+other+`", "args": ["serve"]}}}`, 0o644)
	putFile(t, home+"/.lmstudio/mcp.json", `{"mcpServers": {"toolcell": {"command": "/gone/toolcell", "args": ["serve"]}}}`, 0o644)
	putFile(t, home+"/.kiro/settings/mcp.json", `{"mcpServers": {"toolcell": {"command": "uvx", "args": ["toolcell", "serve"]}}}`, 0o644)
	putFile(t, home+"/.qwen/settings.json", `{broken`, 0o644)
	putFile(t, home+"/.codeium/windsurf/mcp_config.json", `{"mcpServers": {"jira": {"command": "jira"}}}`, 0o644)
	putFile(t, home+"/work/.mcp.json", `{"mcpServers": {"toolcell": {"command": "`+self+`", "args": ["serve"]}}}`, 0o644)
	putFile(t, home+"/work/.cursor/mcp.json", `{"mcpServers": {}}`, 0o644)
	putFile(t, home+"/elsewhere/.mcp.json", `{"mcpServers": {"toolcell": {"command": "`+self+`"}}}`, 0o644) // not by install
	o, _ := newOptions(t)
	err := edit.Journal(o.Settings.Dirs.State).Change(func(all map[string]edit.Record) {
		all[home+"/work/.mcp.json"], all[home+"/work/.cursor/mcp.json"] = edit.Record{Name: "toolcell"}, edit.Record{Name: "toolcell"}
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := findClientFiles(clientconfig.Options{Home: home, Dir: home, Self: self}, o.Settings)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, c := range files.entries(self) {
		client := c.Client
		if c.Project != "" {
			client += " in " + c.Project
		}
		got[client] = []string{c.Name, c.Starts, c.startsText()}
	}
	want := map[string][]string{
		"cursor":   {"toolcell", "this", "this program"},
		"gemini":   {"python", "other", other + ", another version"},
		"lmstudio": {"toolcell", "gone", "/gone/toolcell, which does not exist"},
		"kiro":     {"", "unknown", "by another program, or switched off"},
		"qwen":     {"", "unknown", "unreadable"},

		"claude-code in " + home + "/work": {"toolcell", "this", "this program"},
		"cursor in " + home + "/work":      {"", "nothing", "nothing: the entry has gone"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestStatusFitsOneScreen and says in words what there is.
func TestStatusFitsOneScreen(t *testing.T) {
	o, printed := newOptions(t)
	row := statusRow{
		Program: "/usr/bin/toolcell", Stable: stableCopy{Path: "/home/ada/.local/share/toolcell/bin/toolcell", Exists: true},
		Policy: userFile{File: "/home/ada/.config/toolcell/policy.toml", Exists: true, Error: "line 3: x"}, Config: userFile{File: "/home/ada/.config/toolcell/config.toml"},
		Clients:   []statusClient{{Client: "cursor", Name: "toolcell", Starts: "this", File: "/home/ada/.cursor/mcp.json"}},
		Servers:   map[string]int{"skipped": 1, "idle": 3},
		Running:   []runningProcess{{PID: 4711, Command: "serve", Client: "cursor", Since: time.Now()}},
		Questions: []inbox.Question{{ID: "ask-1", State: consent.Pending, Server: "github", Tool: "create_issue", Arguments: []byte(`{}`)}},
		Disk: []footprint.Use{
			{Kind: footprint.Images, Bytes: 3 << 20, Count: 2, Folders: []string{"/home/ada/.cache/toolcell/images"}},
			{Kind: footprint.Other, Bytes: 4096, Count: 1, Folders: []string{"/home/ada/.cache/toolcell"}},
		},
		Bytes: 3<<20 + 4096, Notes: []string{"a folder is a link"},
	}
	if err := row.print(o); err != nil {
		t.Fatal(err)
	}
	text := printed()
	for _, want := range []string{
		"toolcell 0.1.0", "program    /usr/bin/toolcell\n",
		"copy       /home/ada/.local/share/toolcell/bin/toolcell: another version; toolcell upgrade puts this one there if it is newer\n",
		"policy     /home/ada/.config/toolcell/policy.toml, which cannot be used: line 3: x\n",
		"config     none (defaults and variables apply); it would be /home/ada/.config/toolcell/config.toml\n",
		"servers    3 idle, 1 left out (toolcell servers list)\n",
		"questions  1 is waiting for you: github.create_issue {} (toolcell approvals list)\n",
		"cursor  toolcell  this program  /home/ada/.cursor/mcp.json\n", "   4711  serve    cursor",
		"images   3 MiB      2  /home/ada/.cache/toolcell/images\n", "other    4 KiB      1\n", "total    3 MiB\n", "toolcell: note: a folder is a link\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if n := strings.Count(text, "\n"); n > 24 || t.Failed() {
		t.Errorf("%d lines:\n%s", n, text)
	}
}

// TestCommandHasNoArguments: they may hold code or secrets.
func TestCommandHasNoArguments(t *testing.T) {
	for line, want := range map[string]string{
		"toolcell serve --image x":                   "serve",
		"/usr/bin/toolcell images pull python":       "images pull",
		"toolcell exec -c secret":                    "exec",
		"toolcell exec secret.py":                    "exec",
		"toolcell --version":                         "",
		"toolcell":                                   "",
		"toolcell " + strings.Repeat("very", 10):     "",
		"toolcell approvals approve ask-1 --for run": "approvals approve",
	} {
		if got := commandOf(strings.Fields(line)); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
	if got := commandOf(nil); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

// TestClientIsTheProgramAboveTheLaunchers, such as a shell or uvx.
func TestClientIsTheProgramAboveTheLaunchers(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sh -c 'echo $$; sleep 60; true'; true")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	buf := make([]byte, 20)
	n, err := out.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	for _, digit := range strings.TrimSpace(string(buf[:n])) {
		pid = 10*pid + int(digit-'0')
	}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.TrimSpace(string(comm))
	if got := clientAbove(pid); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p := processOf(pid, "/run/x", time.Time{})
	if p.Client != want || p.String() != "toolcell (PID "+strings.TrimSpace(string(buf[:n]))+", started by "+want+")" {
		t.Errorf("%+v: %s", p, p)
	}
	if p := processOf(0, "/run/x", time.Time{}); p.String() != "a process that cannot be seen from here" {
		t.Errorf("of another container: %s", p)
	}
	if err := exec.Command("kill", "-9", strings.TrimSpace(string(buf[:n]))).Run(); err != nil {
		t.Error(err)
	}
}

// TestFoldersAboveThatMayGo are those that toolcell makes if they are missing, and not the user's.
func TestFoldersAboveThatMayGo(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	t.Setenv("XDG_CACHE_HOME", "/big")
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1000")
	up := func(one string) map[string]int {
		dirs, err := settings.FindDirs(one)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]int{}
		for _, p := range places(settings.Settings{StateDir: one, Dirs: dirs}) {
			if p.Role != footprint.IDs {
				all[p.Dir] = p.Up
			}
			if whole := strings.HasPrefix(p.Dir, "/home/ada/.") || strings.HasPrefix(p.Dir, fmt.Sprintf("/run/user/%d/", os.Geteuid())); p.Role != footprint.IDs && p.Whole != whole {
				t.Errorf("%s is toolcell's alone: %t", p.Dir, p.Whole)
			}
		}
		return all
	}
	got := up("")
	for dir, want := range map[string]int{
		"/big/toolcell": 0, "/home/ada/.local/state/toolcell": 2, "/run/user/1000/toolcell": 0, "/home/ada/.local/state/toolcell/run": 0,
		"/home/ada/.config/toolcell": 1, "/home/ada/.local/share/toolcell": 2,
	} {
		if n, ok := got[dir]; !ok || n != want {
			t.Errorf("above %s may go %d folders (%t), want %d", dir, n, ok, want)
		}
	}
	want := map[string]int{"/srv/x/cache": 1, "/srv/x/state": 1, "/srv/x/run": 1, "/home/ada/.config/toolcell": 1, "/home/ada/.local/share/toolcell": 2}
	if got := up("/srv/x"); !reflect.DeepEqual(got, want) {
		t.Errorf("with one folder: %v, want %v", got, want)
	}
}
