package edit

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// samples opens the user's files of every client that testdata has.
func samples(t *testing.T, f func(t *testing.T, o clientconfig.Options, p Target, text []byte)) {
	t.Helper()
	dirs, err := os.ReadDir("../testdata/clients")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, dir := range dirs {
		o := mcptest.SiteOf(t, filepath.Join("../testdata/clients", dir.Name()))
		o.Self = filepath.Join(o.Home, "bin/toolcell")
		if err := errors.Join(os.MkdirAll(filepath.Dir(o.Self), 0o700), os.WriteFile(o.Self, nil, 0o700)); err != nil {
			t.Fatal(err)
		}
		for _, p := range Targets(o) {
			text, err := os.ReadFile(p.File)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			seen++
			t.Run(dir.Name()+"/"+p.Client, func(t *testing.T) { f(t, o, p, text) })
		}
	}
	if seen < 15 {
		t.Errorf("only %d files were tried", seen)
	}
}

// startsOf are the servers of a config by name, as they would be started.
func startsOf(c config.Config) map[string]string {
	all := map[string]string{}
	for _, s := range c.Servers {
		all[s.Name] = s.Fingerprint()
	}
	for _, p := range c.Problems {
		if p.Server != "" {
			all[p.Server+", left out"] += " " + p.Status
		}
	}
	return all
}

// TestMovedServersMeanTheSame: whatever can be moved is found at its new place
// as what it was, what cannot stays, and all of it can be put back.
func TestMovedServersMeanTheSame(t *testing.T) {
	total := 0
	samples(t, func(t *testing.T, o clientconfig.Options, p Target, text []byte) {
		before := clientconfig.Discover(o)
		move, err := p.PlanMove(text, o.Values(p.File))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range move.Servers {
			names = append(names, s.Name)
		}
		for _, s := range move.Stay {
			if slices.Contains(names, s.Server) && s.Server != "both" || s.Reason == "" { // this project has its own "both", which stays
				t.Errorf("stays: %v", s)
			}
		}
		total += len(names)
		rest, moved := text, []byte(nil)
		if rest, moved, err = p.MoveOut(rest, moved, move.ByDir()); err != nil {
			t.Fatal(err)
		}
		write := func(file string, data []byte) {
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		write(p.File, rest)
		if len(names) > 0 {
			write(p.MovedFile(), moved)
		}
		after := clientconfig.Discover(o)
		if got, want := startsOf(after), startsOf(before); !maps.Equal(got, want) {
			t.Errorf("after the move: %v\nbefore: %v\nin\n%s", got, want, moved)
		}
		for _, s := range after.Servers {
			if s.Name == "both" && s.Client == "claude" {
				continue // this project has its own, which goes before
			}
			if slices.Contains(names, s.Name) && (s.Source != p.MovedFile() || s.Client != p.dialect.Client) {
				t.Errorf("%s is from %s of %q", s.Name, s.Source, s.Client)
			}
		}
		back, empty := rest, moved
		if back, empty, err = p.MoveBack(back, empty, move.ByDir()); err != nil {
			t.Fatal(err)
		}
		write(p.File, back)
		_ = os.Remove(p.MovedFile())
		if got, want := startsOf(clientconfig.Discover(o)), startsOf(before); !maps.Equal(got, want) {
			t.Errorf("after the way back: %v\nbefore: %v\n%s", got, want, back)
		}
		if len(names) > 0 && p.HasServers(empty) {
			t.Errorf("something is left at the new place: %s", empty)
		}
	})
	if total < 20 {
		t.Errorf("only %d servers were moved", total)
	}
}

// TestInstallIntoWhatClientsHave: the entry is found as this program, and
// nothing else in the file means anything new.
func TestInstallIntoWhatClientsHave(t *testing.T) {
	samples(t, func(t *testing.T, o clientconfig.Options, p Target, text []byte) {
		before := startsOf(clientconfig.Discover(o))
		delete(before, "toolcell, left out") // of another client
		self := Entry{Command: o.Self, Env: map[string]string{"TOOLCELL_TIMEOUT": "60"}}
		out, put, err := p.Install(text, self)
		if err != nil || put.Did != Added {
			t.Fatalf("%+v, %v", put, err)
		}
		again, put, err := p.Install(out, self)
		if err != nil || put.Did != Unchanged || string(again) != string(out) {
			t.Errorf("again: %+v, %v", put, err)
		}
		if err := os.WriteFile(p.File, out, 0o600); err != nil {
			t.Fatal(err)
		}
		after := startsOf(clientconfig.Discover(o))
		if delete(after, put.Name+", left out"); !maps.Equal(before, after) {
			t.Errorf("others changed: %v, before %v", after, before)
		}
		o.AllowSelf = true
		i := slices.IndexFunc(clientconfig.Discover(o).Servers, func(s config.Server) bool { return s.Name == put.Name })
		if i < 0 {
			t.Fatalf("it is not in\n%s", out)
		}
		s := clientconfig.Discover(o).Servers[i]
		if s.Command != o.Self || !slices.Equal(s.Args, []string{"serve"}) || s.Env["TOOLCELL_TIMEOUT"] != "60" {
			t.Errorf("it is %+v", s)
		}
		gone, name, err := p.Uninstall(out, "", false)
		if err != nil || name != put.Name {
			t.Fatalf("uninstall: %q, %v", name, err)
		}
		if _, put, err := p.Install(gone, self); err != nil || put.Did != Added {
			t.Errorf("after it: %+v, %v", put, err)
		}
	})
}

// TestMovedFilesAreTheClients: a server that is switched off in one client's
// moved file is on in another's, as before.
func TestMovedFilesAreTheClients(t *testing.T) {
	o := mcptest.Site(t, map[string]string{
		"home/.config/toolcell/servers/cursor.json": `{"mcpServers": {"x": {"command": "a", "disabled": true}}}`,
		"home/.codeium/windsurf/mcp_config.json":    `{"mcpServers": {"x": {"command": "a"}}}`,
	})
	c := clientconfig.Discover(o)
	if len(c.Servers) != 1 || c.Servers[0].Client != "windsurf" {
		t.Errorf("servers: %+v", c.Servers)
	}
}

// TestServersOfTheProjectStay: behind toolcell they would start elsewhere.
func TestServersOfTheProjectStay(t *testing.T) {
	const text = `{"mcpServers": {"a": {"command": "./server.sh"}, "b": {"command": "node", "args": ["./index.js"]}, "c": {"command": "./server.sh", "cwd": "/opt"}}}`
	p, err := TargetOf(mcptest.Site(t, nil), "cursor", false)
	if err != nil {
		t.Fatal(err)
	}
	move, err := p.PlanMove([]byte(text), nil)
	if err != nil || len(move.Servers) != 1 || move.Servers[0].Name != "c" || len(move.Stay) != 2 || !strings.Contains(move.Stay[0].Reason, `set "cwd"`) {
		t.Fatalf("%+v, %v", move, err)
	}
}

// TestValuesAndInputsGoAlong: what VS Code asks for is asked for behind toolcell
// in the same words, and what the user gave counts.
func TestValuesAndInputsGoAlong(t *testing.T) {
	const text = `{"inputs": [{"id": "key", "password": true, "description": "A key"}],
		"servers": {"a": {"command": "x", "env": {"K": "${input:key}"}}, "b": {"command": "y", "envFile": "b.env"}}}`
	o := mcptest.Site(t, map[string]string{"home/.config/Code/User/mcp.json": text, "home/.config/Code/User/b.env": "A=b", "project/b.env": "A=b"})
	p, err := TargetOf(o, "vscode", false)
	if err != nil {
		t.Fatal(err)
	}
	move, err := p.PlanMove([]byte(text), nil)
	if err != nil || len(move.Servers) != 0 || len(move.Stay) != 2 {
		t.Fatalf("without the value: %+v, %v", move, err)
	}
	move, err = p.PlanMove([]byte(text), map[string]string{"key": "s3cret"})
	if err != nil || len(move.Servers) != 1 || move.Servers[0].Name != "a" || len(move.Stay) != 1 {
		t.Fatalf("with it: %+v, %v", move, err)
	}
	if why := move.Stay[0].Reason; !strings.HasPrefix(why, "it depends on where its file is: ") {
		t.Errorf("b stays: %s", why)
	}
	_, moved, err := p.MoveOut([]byte(text), nil, map[string][]string{"": {"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(p.MovedFile()), 0o700), os.WriteFile(p.MovedFile(), moved, 0o600), os.Remove(p.File)); err != nil {
		t.Fatal(err)
	}
	c := clientconfig.Discover(o)
	if len(c.Inputs) != 1 || !c.Inputs[0].Secret || c.Inputs[0].Description != "A key" || c.Inputs[0].Source != p.MovedFile() {
		t.Errorf("inputs: %+v", c.Inputs)
	}
}

// TestInstallSaysThatAnEntryIsSwitchedOff: it does not start something else.
func TestInstallSaysThatAnEntryIsSwitchedOff(t *testing.T) {
	for client, text := range map[string]string{
		"windsurf": `{"mcpServers": {"toolcell": {"command": "/opt/toolcell", "args": ["serve"], "disabled": true}}}`,
		"cursor":   `{"mcpServers": {"toolcell": {"command": "/gone/toolcell", "args": ["serve"], "disabled": true}}}`,
		"opencode": `{"mcp": {"toolcell": {"type": "local", "command": ["/gone/toolcell", "serve"], "enabled": false}}}`,
		"gemini":   `{"mcp": {"excluded": ["toolcell"]}, "mcpServers": {"toolcell": {"command": "/gone/toolcell"}}}`,
	} {
		p, err := TargetOf(mcptest.Site(t, nil), client, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := p.Install([]byte(text), Entry{Command: "/opt/toolcell"}); err == nil || !strings.Contains(err.Error(), `"toolcell" that is switched off`) {
			t.Errorf("%s: got %v", client, err)
		}
		if name, _, err := p.Others([]byte(text)); name != "toolcell" || err != nil {
			t.Errorf("%s: the entry is %q, %v", client, name, err)
		}
		if out, name, err := p.Uninstall([]byte(text), "", false); name != "toolcell" || err != nil || strings.Contains(string(out), "serve") {
			t.Errorf("%s: taken out is %q, %v\n%s", client, name, err, out)
		}
	}
}

// TestInstallFindsItsEntryUnderAnotherName: with two entries, a client would offer the
// tool twice.
func TestInstallFindsItsEntryUnderAnotherName(t *testing.T) {
	p, err := TargetOf(mcptest.Site(t, nil), "cursor", false)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ file, asked, name, did, notNamed string }{
		"no name":                         {`{"mcpServers": {"x": {"command": "true"}, "py": {"command": "/gone/toolcell", "args": ["serve"]}}}`, "", "py", Updated, ""},
		"another":                         {`{"mcpServers": {"x": {"command": "true"}, "py": {"command": "/gone/toolcell", "args": ["serve"]}}}`, "new", "py", Updated, "new"},
		"one that is taken":               {`{"mcpServers": {"x": {"command": "true"}, "py": {"command": "/gone/toolcell", "args": ["serve"]}}}`, "x", "py", Updated, "x"},
		"one of two":                      {`{"mcpServers": {"py": {"command": "/gone/toolcell"}, "py2": {"command": "/gone/toolcell", "args": ["serve"]}}}`, "py2", "py2", Updated, ""},
		"beside one that is switched off": {`{"mcpServers": {"py": {"command": "/gone/toolcell", "disabled": true}}}`, "new", "new", Added, ""},
		"none":                            {`{"mcpServers": {"x": {"command": "true"}}}`, "new", "new", Added, ""},
	} {
		_, got, err := p.Install([]byte(tt.file), Entry{Name: tt.asked, Command: "/opt/toolcell"})
		if err != nil || got.Name != tt.name || got.Did != tt.did || got.NotNamed != tt.notNamed {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestInstallSaysThatTheFileSwitchesItOff: Gemini's list of allowed servers is
// not the entry's to change.
func TestInstallSaysThatTheFileSwitchesItOff(t *testing.T) {
	p, err := TargetOf(mcptest.Site(t, nil), "gemini", false)
	if err != nil {
		t.Fatal(err)
	}
	for text, off := range map[string]bool{
		`{"mcp": {"allowed": ["docs"]}}`:                              true,
		`{"mcp": {"excluded": ["toolcell"]}, "mcpServers": {}}`:       true,
		`{"mcp": {"allowed": ["toolcell"]}, "mcpServers": {"a": {}}}`: false,
	} {
		if _, put, err := p.Install([]byte(text), Entry{Command: "/opt/toolcell"}); err != nil || put.Off != off || put.Did != Added {
			t.Errorf("%s: %+v, %v", text, put, err)
		}
	}
}

// TestClientThatWasProbablyMeant is named only if the name is like it.
func TestClientThatWasProbablyMeant(t *testing.T) {
	for client, want := range map[string]string{
		"curser": "did you mean cursor? Known are claude-code", "codecks": "did you mean codex?", "Kirro": "did you mean kiro?",
		"foo": "; known are claude-code", "xyzzyx": "; known are claude-code", "": "; known are claude-code",
	} {
		_, err := TargetOf(clientconfig.Options{}, client, false)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", client, err, want)
		}
	}
}
