package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestOneLineSaysWhatIsLeftOut: in full if it is one thing, else as a count. The error
// of the command names a server that it needs.
func TestOneLineSaysWhatIsLeftOut(t *testing.T) {
	bad := func(server string) config.Problem {
		return config.Problem{Source: "/a.json", Server: server, Status: config.StatusSkipped, Reason: `has no "command"`}
	}
	file := config.Problem{Source: "/b.json", Reason: "line 1: not JSON"}
	project := config.Project{Path: "/p/.mcp.json", Starts: []config.Start{{Server: "x"}, {Server: "y"}}}
	const note = "toolcell: note: "
	for name, tt := range map[string]struct {
		config config.Config
		named  []string
		want   string
	}{
		"nothing":              {},
		"a server":             {config.Config{Problems: []config.Problem{bad("s")}}, nil, note + `leaving out a server: /a.json: server "s": has no "command"` + "\n"},
		"a file":               {config.Config{Problems: []config.Problem{file}}, nil, note + "leaving out a file: /b.json: line 1: not JSON\n"},
		"a project":            {config.Config{Projects: []config.Project{project}}, nil, note + "/p/.mcp.json is not trusted, so its 2 servers are left out; read it, then: toolcell servers trust /p/.mcp.json\n"},
		"servers, one needed":  {config.Config{Problems: []config.Problem{bad("s"), bad("t"), bad("u")}}, []string{"t"}, note + "2 servers are left out: toolcell servers list\n"},
		"a needed server":      {config.Config{Problems: []config.Problem{bad("s")}}, []string{"s"}, ""},
		"a needed project":     {config.Config{Projects: []config.Project{project}}, []string{"y"}, ""},
		"files and servers":    {config.Config{Problems: []config.Problem{file, bad("s")}, Projects: []config.Project{project}}, nil, note + "1 file and 3 servers are left out: toolcell servers list\n"},
		"what is off, skipped": {config.Config{Problems: []config.Problem{{Server: "s", Skipped: true}}}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			f := &discovered{config: tt.config}
			f.noteProblems(Options{Streams: &console.Streams{Err: out}}, tt.named)
			if got, err := os.ReadFile(out.Name()); err != nil || string(got) != tt.want {
				t.Errorf("%v, got %s\nwant %s", err, got, tt.want)
			}
		})
	}
}

// TestNamedFilesMustExist: for a command of the shell; serve starts and logs it.
func TestNamedFilesMustExist(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TOOLCELL_STATE_DIR", dir)
	t.Setenv("HOME", dir)
	gone := filepath.Join(dir, "gone")
	for args, want := range map[string]string{
		"exec --servers-config " + gone + " -c 1":       "setting --servers-config: " + gone + " does not exist",
		"servers list --servers-config ~/gone":          "setting --servers-config: " + gone + " does not exist",
		"servers call --policy " + gone + " a b":        "setting --policy: " + gone + " does not exist",
		"servers trust --servers-config " + gone + " x": "setting --servers-config: " + gone + " does not exist",
	} {
		out, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		code := runCommandLine(append([]string{"toolcell"}, strings.Fields(args)...), os.Stdin, os.Stdout, out)
		if got, err := os.ReadFile(out.Name()); err != nil || code != console.ExitUsage || string(got) != "toolcell: "+want+"\n" {
			t.Errorf("%s: exit %d, %v\n%swant %s", args, code, err, got, want)
		}
	}
}
