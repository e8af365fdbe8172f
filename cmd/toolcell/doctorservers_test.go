package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
