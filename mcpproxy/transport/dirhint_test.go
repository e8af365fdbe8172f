package transport

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/elicitation"
	"github.com/toolcell/toolcell/mcpproxy/mcptest"
)

// TestStartErrorHintsAtFilesLeftBehind: the server of an entry that names a file of
// the project finds it no more, since it starts at home.
func TestStartErrorHintsAtFilesLeftBehind(t *testing.T) {
	project, home := t.TempDir(), t.TempDir()
	for _, name := range []string{"server.py", "build/index.js", "pkg/__main__.py", "both.py"} {
		mcptest.WriteFile(t, filepath.Join(project, name), "")
	}
	mcptest.WriteFile(t, filepath.Join(home, "both.py"), "")
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"server.py", []string{"-u", "server.py"}},
		{"build/index.js", []string{"build/index.js", "--stdio"}},
		{"--config=server.py", []string{"--config=server.py"}},
		{"server", []string{"-m", "server"}},
		{"pkg", []string{"-m", "pkg"}},
		{"server.py", []string{"-c", "exec python server.py"}},
		{"", []string{"both.py", "-m", "both", "none.py", "build", filepath.Join(project, "server.py"), "server", "--x="}},
		{"", nil},
	} {
		if got := fileOnlyIn(project, home, tt.args); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.args, got, tt.want)
		}
	}
}

// TestServerStartsInItsDirectory, and PWD says the same.
func TestServerStartsInItsDirectory(t *testing.T) {
	home, project := t.TempDir(), t.TempDir()
	t.Chdir(project)
	t.Setenv("PWD", "/elsewhere")
	mcptest.WriteFile(t, filepath.Join(project, "server.sh"), "")
	start := func(s config.Server, script string) error {
		s.Name, s.Transport, s.Command, s.Source = "s", config.Stdio, "sh", "f.json"
		s.Args = []string{"-c", script, "server.sh"}
		_, _, err := filled(s, Dialer{}).Dial(t.Context(), Handshake{}, elicitation.Capabilities{})
		return err
	}
	own := filepath.Join(home, "own")
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	const where = `tr '\0' '\n' </proc/$$/environ | grep ^PWD= >&2; echo "in $(pwd -P)." >&2` // as it was given to the shell
	for dir, s := range map[string]config.Server{home: {DefaultDir: home}, own: {DefaultDir: home, Dir: own}, project: {}} {
		mcptest.WantError(t, start(s, where), "PWD="+dir+"\n", "in "+dir+".")
	}
	mcptest.WantError(t, start(config.Server{Dir: own + "/missing"}, ""), "missing\" is not there", `correct "cwd" in f.json`)
	mcptest.WantError(t, start(config.Server{DefaultDir: home}, `. ./"$0"`), "exited: ",
		`; "server.sh" is in the folder that toolcell was started in`, `set "cwd" in f.json`)
}
