package stdio

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/config"
	"github.com/toolcell/toolcell/mcpproxy/redact"
	"github.com/toolcell/toolcell/mcpproxy/transport/message"
)

func startOf(s config.Server) error {
	_, err := Start(context.Background(), s, OnHost(nil), redact.New(s), slog.New(slog.DiscardHandler), message.NewNotifications(func() {}))
	return err
}

// TestServerThatCannotBeStarted says what the user can do.
func TestServerThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ command, dir, want string }{
		{"/bin/true", dir + "/nowhere", `its directory "` + dir + `/nowhere" is not there; create it or correct "cwd" in mcp.json`},
		{"/bin/true", file, `its directory "` + file + `" is not there; create it or correct "cwd" in mcp.json`},
		{"no-such-server", dir, `command "no-such-server" is not there or not executable; install it or correct mcp.json`},
		{file, dir, `command "` + file + `" is not there or not executable; install it or correct mcp.json`},
	} {
		err := startOf(config.Server{Name: "s", Command: tt.command, Dir: tt.dir, Source: "mcp.json"})
		if !errors.As(err, new(*CommandError)) || err.Error() != tt.want {
			t.Errorf("%s in %s: %v\nwant %s", tt.command, tt.dir, err, tt.want)
		}
	}
}

// TestDirectoryOfThisProcessIsGone: "cwd" of the entry is not at fault.
func TestDirectoryOfThisProcessIsGone(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	err := startOf(config.Server{Name: "s", Command: "/bin/true", Dir: "sub"})
	if !errors.Is(err, os.ErrNotExist) || errors.As(err, new(*CommandError)) {
		t.Errorf("it says %v", err)
	}
}

// TestServerHasTheEnvironmentOfItsEntry, above that of this process.
func TestServerHasTheEnvironmentOfItsEntry(t *testing.T) {
	t.Setenv("TOOLCELL_TEST_INHERITED", "inherited")
	t.Setenv("TOOLCELL_TEST_SET", "before")
	s := shell(`cat; echo "$TOOLCELL_TEST_INHERITED $TOOLCELL_TEST_SET $PWD" >&2`, "sh")
	s.Dir, s.Env = t.TempDir(), map[string]string{"TOOLCELL_TEST_SET": "set"}
	w := serve(t, s, nil, slog.DiscardHandler)
	hangUp(t, w)
	if err := w.Ended(); !strings.HasSuffix(err.Error(), ": inherited set "+s.Dir) {
		t.Error(err)
	}
}
