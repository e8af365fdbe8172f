package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/bridge/savedtools"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
)

// newOptions returns Options whose folders and streams are files of the test, and a function
// that returns what was printed.
func newOptions(t *testing.T, args ...string) (o Options, printed func() string) {
	t.Helper()
	dirs, err := settings.FindDirs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	o = Options{Streams: &console.Streams{Out: file, Err: file}, Command: "a command", Args: args, Settings: settings.Settings{Dirs: dirs}}
	return o, func() string { return read(t, file) }
}

// TestCommandsWithoutACommandLine: what a command does needs its Options alone.
func TestCommandsWithoutACommandLine(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		run  func(context.Context, Options) error
		want string // printed, or the error
	}{
		"images list": {nil, imagesFunc(imagesList).run, "there are no images here yet"},
		"images rm":   {[]string{"x"}, imagesFunc(imagesRemove).run, `there is no image "x" here`},
		"images prune": {nil, func(ctx context.Context, o Options) error {
			o.Unused = "soon"
			return imagesFunc(imagesPruneOptions{Options: o}.run).run(ctx, o)
		}, `--unused: "soon" is not a number of days`},
		"images pull": {[]string{"oci:/nope"}, func(ctx context.Context, o Options) error {
			return imagesPull(ctx, imagesPullOptions{Options: o, Creds: ":secret"})
		}, "has no user"},
		"packages show": {[]string{"12"}, packagesShow, `"12"`},
		"packages prune": {nil, func(ctx context.Context, o Options) error {
			o.Unused = "0"
			return packagesPrune(ctx, o)
		}, "nothing to remove"},
		"approvals approve": {[]string{"ask-x"}, func(ctx context.Context, o Options) error {
			return approvalsApprove(ctx, approvalsOptions{Options: o, For: "ever"})
		}, "--for is one of call, run, connection, connection-same, connection-reads, reads"},
		"tools show": {[]string{"x"}, func(ctx context.Context, o Options) error {
			return toolsShow(ctx, o, savedtools.Open(o.Settings.Dirs.Tools(), ""))
		}, "x"},
		"servers set": {[]string{"x"}, func(ctx context.Context, o Options) error {
			return serversSet(ctx, serversSetOptions{Options: o})
		}, `there is no server "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			o, printed := newOptions(t, tt.args...)
			err := tt.run(t.Context(), o)
			got := printed()
			if err != nil {
				got += err.Error()
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestRowsArePrintedOnce: as JSON, as a table, or that there are none.
func TestRowsArePrintedOnce(t *testing.T) {
	for _, tt := range []struct {
		json bool
		rows []string
		want string
	}{
		{true, nil, "[]\n"},
		{true, []string{"a"}, "[\n  \"a\"\n]\n"},
		{false, nil, "toolcell: none\nhint: next\n"},
		{false, []string{"a"}, "NAME\na\n"},
	} {
		o, printed := newOptions(t)
		o.JSON = tt.json
		err := printRows(o, tt.rows, "none", "next", []console.Column{{Name: "NAME"}}, func(s string) []string { return []string{s} })
		if got := printed(); err != nil || got != tt.want {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
}

// TestAMistakeInTheFileDoesNotStopAnswers: a run may wait for one, and goes on with the settings
// that it began with.
func TestAMistakeInTheFileDoesNotStopAnswers(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME"} {
		t.Setenv(name, "")
	}
	t.Chdir(home)
	config := filepath.Join(home, ".config", "toolcell", "config.toml")
	if err := errors.Join(os.MkdirAll(filepath.Dir(config), 0o755), os.WriteFile(config, []byte("memry = '1g'\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for line, stops := range map[string]bool{
		"approvals list": false, "status": false, "uninstall cursor": false, "purge --dry-run": false, "servers list": true, "tools list": true,
	} {
		errs, err := os.Create(filepath.Join(t.TempDir(), "errs"))
		if err != nil {
			t.Fatal(err)
		}
		code := runCommandLine(append([]string{"toolcell"}, strings.Fields(line)...), null, null, errs)
		said := read(t, errs)
		errs.Close()
		if stopped := code == console.ExitUsage; stopped != stops || !strings.Contains(said, "memry") || strings.Contains(said, "going on without the file") == stops {
			t.Errorf("%s: exit %d\n%s", line, code, said)
		}
	}
}
