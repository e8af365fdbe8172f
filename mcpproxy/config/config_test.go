package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestFingerprintIsOfWhatStartsTheServer, and of nothing else.
func TestFingerprintIsOfWhatStartsTheServer(t *testing.T) {
	server := func() config.Server {
		return config.Server{
			Name: "a", Transport: config.Stdio, Command: "c", Args: []string{"1", "2"}, Env: map[string]string{"A": "1", "B": "2"},
			Alias: "a", Description: "d", Source: "s", Client: "claude", Also: []string{"t"},
		}
	}
	same := server()
	same.Alias, same.Description, same.Source, same.Project, same.Client, same.Also = "b", "", "", true, "cursor", nil
	if server().Fingerprint() != same.Fingerprint() {
		t.Error("where the entry stands changes its fingerprint")
	}
	seen := map[string]string{server().Fingerprint(): "as it is"}
	for name, change := range map[string]func(*config.Server){
		"name":      func(s *config.Server) { s.Name = "b" },
		"arguments": func(s *config.Server) { s.Args = []string{"1 2"} },
		"a value":   func(s *config.Server) { s.Env["A"] = "2" },
		"folder":    func(s *config.Server) { s.Dir = "/d" },
		"default":   func(s *config.Server) { s.DefaultDir = "/d" },
		"tools":     func(s *config.Server) { s.AllowTools = []string{"x"} },
		"login":     func(s *config.Server) { s.OAuth = &config.OAuth{ClientSecret: "x"} },
	} {
		s := server()
		change(&s)
		if other, ok := seen[s.Fingerprint()]; ok {
			t.Errorf("another %s has the fingerprint of %s", name, other)
		}
		seen[s.Fingerprint()] = name
	}
	if f := server().Fingerprint(); len(f) != 64 {
		t.Errorf("the fingerprint is %q", f)
	}
}

func TestLaunchShowsNoSecret(t *testing.T) {
	for want, s := range map[string]config.Server{
		"A=… TOKEN=… npx -y 'my server' (in /x)": {
			Transport: config.Stdio, Command: "npx", Args: []string{"-y", "my server"}, Env: map[string]string{"TOKEN": "s3cret", "A": "s3cret"}, Dir: "/x",
		},
		"https://x/mcp": {Transport: config.HTTP, URL: "https://x/mcp", Headers: map[string]string{"Authorization": "s3cret"}},
		"'red[31m'":     {Transport: config.Stdio, Command: "red\x1b[31m"},
	} {
		if got := s.Launch(); got != want {
			t.Errorf("Launch() = %q, want %q", got, want)
		}
	}
	if got := (config.Server{Transport: config.Stdio, Command: strings.Repeat("x", 10_000)}).Launch(); len(got) > 2048 {
		t.Errorf("a line of %d bytes", len(got))
	}
}

func TestLookPathTakesThePathOfTheEntry(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"bin/server", "own/server", "project/run.sh"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "bin/text"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	t.Setenv("PATH", filepath.Join(root, "bin"))
	project := filepath.Join(root, "project")
	own := config.Server{Env: map[string]string{"PATH": filepath.Join(root, "own")}}
	for _, tt := range []struct {
		name    string
		server  config.Server
		command string
		want    string
	}{
		{"the PATH of this process", config.Server{}, "server", "bin/server"},
		{"the PATH of the entry", own, "server", "own/server"},
		{"no PATH that is not absolute", config.Server{Env: map[string]string{"PATH": ".:bin:project"}}, "run.sh", ""},
		{"an absolute path", own, filepath.Join(root, "bin/server"), "bin/server"},
		{"a path in the project", config.Server{}, "./run.sh", "project/run.sh"},
		{"a path in the folder it starts in", config.Server{DefaultDir: filepath.Join(root, "bin")}, "./server", "bin/server"},
		{"a path in the folder of the entry", config.Server{Dir: "../bin"}, "./server", "bin/server"},
		{"not executable", config.Server{}, "text", ""},
		{"a folder", config.Server{}, root + "/bin", ""},
		{"not there", config.Server{}, "missing", ""},
	} {
		want := tt.want
		if want != "" {
			want = filepath.Join(root, want)
		}
		if got := tt.server.LookPath(project, tt.command); got != want {
			t.Errorf("%s: %q, want %q", tt.name, got, want)
		}
	}
}

// TestRelativePathsNeedADirectory: "." would be all of the user's home.
func TestRelativePathsNeedADirectory(t *testing.T) {
	for _, tt := range []struct {
		want   string
		server config.Server
	}{
		{`its "command"`, config.Server{Command: "./server.sh"}},
		{`its "command"`, config.Server{Command: "bin/server"}},
		{`its argument 2`, config.Server{Command: "npx", Args: []string{"server-filesystem", "."}}},
		{`its argument 1`, config.Server{Command: "node", Args: []string{"./build/index.js"}}},
		{`its argument 1`, config.Server{Command: "python", Args: []string{"../x.py"}}},
		{`its argument 1`, config.Server{Command: "c", Args: []string{".."}}},
		{`its argument 1`, config.Server{Command: "c", Args: []string{"--root=./s3cret"}}},
		{`its variable "ROOT"`, config.Server{Command: "c", Env: map[string]string{"A": "x", "ROOT": "./s3cret"}}},
		{"", config.Server{Command: "./server.sh", Args: []string{"."}, Dir: "/opt/x"}},
		{"", config.Server{Command: "/opt/server.sh", Args: []string{"/x", "~/x", "a/b", ".hidden", "...", "-", "--x=.y", ""}}},
		{"", config.Server{URL: "https://x/", Transport: config.HTTP, Command: "./x"}},
	} {
		if tt.server.Transport == "" {
			tt.server.Transport = config.Stdio
		}
		err := tt.server.CheckPaths()
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%+v: %v", tt.server, err)
		case tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want+" is a path relative to the project") ||
			!strings.Contains(err.Error(), `set "cwd"`) || strings.Contains(err.Error(), "s3cret")):
			t.Errorf("%+v: %v, want %s", tt.server, err, tt.want)
		}
	}
}

func TestProblemsAreOneLine(t *testing.T) {
	for want, p := range map[string]config.Problem{
		"f.json: is empty":                 {Source: "f.json", Reason: "is empty"},
		`f.json: server "a": its name`:     {Source: "f.json", Server: "a", Reason: "its name"},
		`server "a": it does not answer`:   {Server: "a", Reason: "it does not answer"},
		`f.json: server "a\nb": a newline`: {Source: "f.json", Server: "a\nb", Reason: "a newline"},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
