package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/sandboxes"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/terminaltest"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/policy"
)

// TestUpdateSaysWhatDiffers, in lines to which what a registry says adds none.
func TestUpdateSaysWhatDiffers(t *testing.T) {
	row := updatedServer{Server: "x", Scripts: []string{"native", "other"}, Changes: []sandboxes.Change{
		{Name: "added", New: "1.0"},
		{Name: "gone", Old: "2.0"},
		{Name: "newer", Old: "1.0", New: "1.1"},
		{Name: "other", Old: "3", New: "3"},
		{Name: "odd\n+ \x1b[31mname", New: "1\n2"},
	}}
	want := "x:\n  + added 1.0\n  - gone 2.0\n  newer 1.0 → 1.1\n  other 3, with other files\n"
	got := row.describe()
	if !strings.HasPrefix(got, want) || strings.ContainsRune(got, 0x1b) || strings.Count(got, "\n") != 7 || !strings.HasSuffix(got, "\n  with install scripts: native, other\n") {
		t.Errorf("got %q", got)
	}
}

// TestTryShowsNothingOfAServersMaking as anything but text.
func TestTryShowsNothingOfAServersMaking(t *testing.T) {
	o, printed := newOptions(t)
	row := triedServer{
		Server: "x", Error: "exited\n\x1b[2J", Rights: []string{"network: a.example"}, Refused: []refusedHost{{Host: "b.example:443\x1b"}},
		Stderr: []string{"\x1b[31mred", "last"}, File: "/p/policy.toml", Section: "[servers.x]\nsandbox = \"on\"\n", Home: "/h",
		Command: &sandboxes.Meaning{Kind: "npm", Packages: []string{"pkg@1"}, Locked: 3, Scripts: []string{"native"}},
	}
	row.print(o.Streams)
	got := printed()
	for _, want := range []string{
		"x does not work in a sandbox: exited", "\ncommand: pkg@1 of npm; 3 packages locked; with install scripts, which have not run: native\n",
		"\nit had: network: a.example\nrefused: b.example:443", "\nA section for /p/policy.toml. Read it before you paste it:\n\n[servers.x]\nsandbox = \"on\"",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q", want)
		}
	}
	if strings.ContainsRune(got, 0x1b) || t.Failed() {
		t.Errorf("got %q", got)
	}
}

// TestSectionIsAddedIfTheUserWantsThat: what the file has stays, and a section of the server is not overwritten.
func TestSectionIsAddedIfTheUserWantsThat(t *testing.T) {
	const before, section = "# mine\n[default]\nsandbox = 'on' # why\n", "[servers.x]\nsandbox = \"on\"\n"
	for name, tt := range map[string]struct {
		has, typed string
		row        triedServer
		want       string // in the file
		said       string // in the error
	}{
		"yes":              {before, "y\n", triedServer{Section: section}, before + "\n" + section, ""},
		"no file":          {"", "y\n", triedServer{Section: section}, section, ""},
		"no last newline":  {"[default]", "y\n", triedServer{Section: section}, "[default]\n\n" + section, ""},
		"no":               {before, "n\n", triedServer{Section: section}, before, "nothing was written"},
		"a section":        {before + section, "y\n", triedServer{Section: section}, before + section, "may have a section of this server, which is not overwritten"},
		"a mistake":        {"[defaul]\n", "y\n", triedServer{Section: section}, "[defaul]\n", "defaul"},
		"nothing to add":   {before, "y\n", triedServer{Section: section, complete: true}, before, ""},
		"no proposal":      {before, "y\n", triedServer{}, before, ""},
		"what is not seen": {before, "y\n", triedServer{Section: "# \u202e\n" + section}, before, "cannot be shown"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := newOptions(t)
			ours, theirs := terminaltest.Open(t, 80)
			o.In, o.Err = theirs, theirs
			if _, err := ours.WriteString(tt.typed); err != nil {
				t.Fatal(err)
			}
			tt.row.Server, tt.row.File = "x", filepath.Join(t.TempDir(), "policy.toml")
			if tt.has != "" {
				if err := os.WriteFile(tt.row.File, []byte(tt.has), 0o640); err != nil {
					t.Fatal(err)
				}
			}
			err := serversSandboxOptions{Options: o, Write: true}.write(t.Context(), &tt.row)
			if (err == nil) != (tt.said == "") || err != nil && !strings.Contains(err.Error(), tt.said) {
				t.Errorf("%v, want %q", err, tt.said)
			}
			got, err := os.ReadFile(tt.row.File)
			if string(got) != tt.want || err != nil {
				t.Errorf("the file has %q, %v\nwant %q", got, err, tt.want)
			}
			if info, err := os.Stat(tt.row.File); tt.has != "" && (err != nil || info.Mode().Perm() != 0o640) {
				t.Errorf("its mode is %v, %v", info.Mode(), err)
			}
		})
	}
}

// TestTrySaysWhatToDoWithTheSection, or why there is none.
func TestTrySaysWhatToDoWithTheSection(t *testing.T) {
	const off = "# why\n[servers.x]\nsandbox = \"off\"\n"
	for name, tt := range map[string]struct {
		row  triedServer
		want string
	}{
		"new":                  {triedServer{Section: "[servers.x]\n"}, "\nA section for /p. Read it before you paste it:\n\n[servers.x]\n"},
		"more keys":            {triedServer{Section: "[servers.x]\n", has: true}, "\nThese keys of its section in /p have been added to. Read them before you paste them:\n\n[servers.x]\n"},
		"nothing new":          {triedServer{Section: "[servers.x]\n", complete: true}, "\nIts section in /p has all that is known to be needed.\n"},
		"for the host":         {triedServer{OnHost: "why", Section: off}, "\nIt has to stay on the host, where it has all your rights: why.\nThis in /p keeps it there, if you trust it:\n\n" + off},
		"for the host already": {triedServer{OnHost: "why", Section: off, complete: true}, "\nIt has to stay on the host, where it has all your rights: why.\nThe policy /p says so.\n"},
		"not to be run":        {triedServer{}, "\nNo section is proposed before its command is changed. Until then it runs only on the host, where it has all your rights.\n"},
	} {
		o, printed := newOptions(t)
		tt.row.File = "/p"
		if tt.row.printSection(o.Streams); printed() != tt.want {
			t.Errorf("%s:\n%s", name, printed())
		}
	}
}

// TestOnlyServersInSandboxesAreUpdated: the packages of others are chosen by their commands.
func TestOnlyServersInSandboxesAreUpdated(t *testing.T) {
	o, _ := newOptions(t)
	l := newServerLauncher(o.Settings, policy.Parse(nil, "policy.toml"), nil)
	all := config.Config{
		Servers:  []config.Server{{Name: "re mote", Alias: "re_mote", Transport: config.HTTP, URL: "https://x.example"}},
		Problems: []config.Problem{{Server: "broken", Reason: "its command is empty"}},
	}
	for name, want := range map[string]string{"remote": `there is no server "remote"; did you mean "re mote"?`, "": "there is no server", "broken": "its command is empty"} {
		if _, err := findServer(all, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"re mote", "re_mote"} {
		server, err := findServer(all, name)
		if err != nil || server.Name != "re mote" {
			t.Fatalf("%q: %+v, %v", name, server, err)
		}
		if _, err := l.update(t.Context(), server); err == nil || !strings.Contains(err.Error(), "does not run in a sandbox") || !strings.HasSuffix(err.Error(), "servers sandbox 're mote'") {
			t.Error(err)
		}
	}
}
