package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy"
	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/oci/doctor"
)

func TestDoctorNamesServersThatMayChangeOurFiles(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	own := []string{filepath.Join(home, ".local/state/toolcell"), filepath.Join(home, ".config/toolcell")}
	for _, dir := range append(own, filepath.Join(home, "docs"), filepath.Join(home, ".config/other"), filepath.Join(own[0], "tools")) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".config", filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(home)
	for _, tt := range []struct {
		args []string
		dir  string // where it is started
		at   string // the folder that is found, if any
	}{
		{args: []string{"-y", "@modelcontextprotocol/server-filesystem", home}, at: home},
		{args: []string{home + "/docs", home + "/.config/"}, at: home + "/.config"},
		{args: []string{home + "/.local/state/toolcell/tools"}, at: home + "/.local/state/toolcell/tools"},
		{args: []string{home + "/.config/toolcell"}, at: home + "/.config/toolcell"},
		{args: []string{home + "/link"}, at: home + "/link"},
		{args: []string{"/"}, at: "/"},
		{args: []string{"~"}, at: home},
		{args: []string{"~/.config"}, at: home + "/.config"},
		{args: []string{"."}, at: home},
		{args: []string{".."}, dir: home + "/docs", at: home},
		{args: []string{"."}, dir: home + "/docs"},
		{args: []string{"--root=" + home}, at: home},
		{args: []string{"run", "-v", home + ":/data:ro", "image"}, at: home},
		{args: []string{"--mount", "type=bind,src=" + home + ",dst=/data"}, at: home},
		{args: []string{"--mount", "type=bind,src=" + home + "/docs,dst=/"}},
		{args: []string{"file://" + home}, at: home},
		{args: []string{home + "/docs", home + "/.config/other", "https://example.com/", "--base=x/y", home + "/not there", "toolcell"}},
	} {
		checks := checkServerFolders([]config.Server{{Name: "files", Args: tt.args, Dir: tt.dir, Source: "/x/mcp.json"}}, own)
		switch {
		case tt.at == "" && len(checks) == 0:
		case tt.at == "" || len(checks) != 1:
			t.Errorf("%q: %+v", tt.args, checks)
		default:
			c := checks[0]
			if c.Code != "RC-SERVER-FOLDER" || c.Status != doctor.CheckDegraded || !strings.Contains(c.Text, `server "files" may use the folder `+tt.at+",") || !strings.HasSuffix(c.Cure, " /x/mcp.json") {
				t.Errorf("%q: %+v", tt.args, c)
			}
		}
	}
}

// TestClientChecks: an entry that starts a toolcell that is gone, or another one, is
// named with its file and the command that brings it up to date.
func TestClientChecks(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, home)
	}
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	self := write("bin/toolcell", "this version", 0o755)
	same, other := write("copy/toolcell", "this version", 0o755), write("old/toolcell", "that version", 0o755)
	gone := home + "/gone/toolcell"
	entry := func(name, more, command string) string {
		return fmt.Sprintf(`{"mcpServers":{%q:{%s"command":%q,"args":["serve"]},"else":{"command":"npx","args":["-y","x"]}}}`, name, more, command)
	}
	cursor := home + "/.cursor/mcp.json"
	for name, tt := range map[string]struct {
		text string
		mode os.FileMode
		want string // CODE, and a part of the text
		cure string
	}{
		"this":               {entry("toolcell", "", self), 0o600, "RC-CLIENT Cursor starts this program", ""},
		"a copy":             {entry("toolcell", "", same), 0o600, "RC-CLIENT Cursor", ""},
		"gone":               {entry("toolcell", "", gone), 0o600, `RC-CLIENT-GONE the entry "toolcell" of Cursor in ` + cursor + " starts " + gone + ", which does not exist", self + " install cursor"},
		"not in PATH":        {entry("toolcell", `"env":{"PATH":"/nonexistent"},`, "toolcell"), 0o600, "RC-CLIENT-GONE", self + " install cursor"},
		"another":            {entry("toolcell", "", other), 0o600, "RC-CLIENT-OTHER the entry", self + " install cursor"},
		"under another name": {entry("my box", "", gone), 0o600, `RC-CLIENT-GONE the entry "my box"`, self + " install cursor --name 'my box'"},
		"a read-only file":   {entry("toolcell", "", gone), 0o400, "RC-CLIENT-GONE", self + " install cursor --force"},
		"switched off":       {entry("toolcell", `"disabled":true,`, gone), 0o600, "", ""},
		"through a launcher": {`{"mcpServers":{"toolcell":{"command":"npx","args":["toolcell"]}}}`, 0o600, "", ""},
		"none":               {`{"mcpServers":{}}`, 0o600, "", ""},
		"unreadable":         {`{"mcpServers":`, 0o600, "", ""},
	} {
		_ = os.Remove(cursor) // one that is read-only cannot be written anew
		write(".cursor/mcp.json", tt.text, tt.mode)
		checks := checkClients(clientconfig.Options{Home: home, Dir: home, Self: self})
		var got, cure string
		if len(checks) > 0 {
			got, cure = checks[0].Code+" "+checks[0].Text, checks[0].Cure
		}
		if len(checks) > 1 || !strings.HasPrefix(got, tt.want) || tt.want == "" != (got == "") || cure != tt.cure {
			t.Errorf("%s: got %+v, want %q and %q", name, checks, tt.want, tt.cure)
		}
	}
}

// TestDoctorSaysWhereServersRun, and which do not start on a host without sandboxes.
func TestDoctorSaysWhereServersRun(t *testing.T) {
	servers := []mcpproxy.ServerStatus{
		{Name: "db", Where: mcpproxy.OnHost},
		{Name: "files", Where: mcpproxy.InSandbox},
		{Name: "web", Where: mcpproxy.Remote},
		{Name: "notes", Where: mcpproxy.InSandbox},
		{Name: "left out"},
	}
	none := doctor.Fatal("RC-USERNS-SYSCTL", "no", "sysctl -w x=1")
	for name, tt := range map[string]struct {
		servers                    []mcpproxy.ServerStatus
		before                     []doctor.Check
		wantStatus, want, wantCure string
	}{
		"sandboxes run":            {servers, []doctor.Check{doctor.OK("RC-USERNS", "yes")}, doctor.CheckOK, `where servers run: sandboxed: "files", "notes"; host: "db"; remote: "web"`, ""},
		"none runs":                {servers, []doctor.Check{none}, doctor.CheckDegraded, `servers that belong in sandboxes do not start, since none can run, see RC-USERNS-SYSCTL: "files", "notes"`, none.Cure},
		"none runs, and none must": {servers[:1], []doctor.Check{none}, doctor.CheckOK, `where servers run: host: "db"`, ""},
	} {
		got := checkServerSandboxes(tt.servers, tt.before)
		if len(got) != 1 || got[0].Status != tt.wantStatus || got[0].Text != tt.want || got[0].Cure != tt.wantCure {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := checkServerSandboxes(servers[4:], nil); len(got) > 0 {
		t.Errorf("without a server that is used: %+v", got)
	}
}
