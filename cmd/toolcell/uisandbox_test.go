package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/page"
	"github.com/toolcell/toolcell/oci/doctor"
)

// TestPageHasTheRowsOfTheCommands: those of doctor and status.
func TestPageHasTheRowsOfTheCommands(t *testing.T) {
	o, printed := pageOf(t)
	putFile(t, o.Settings.Dirs.State+"/x/y", strings.Repeat("x", 10_000), 0o600)
	view := o.sandbox(t.Context())
	checks := rowsOf[doctor.Check](t, printed(func(o Options) error { return runDoctor(t.Context(), o) }))
	if len(view.Checks) != len(checks) || view.Problem != "" || view.Summary == "" {
		t.Fatalf("%+v, want %+v", view, checks)
	}
	for i, c := range checks {
		if got := view.Checks[i]; got.Code != c.Code || got.Status != c.Status || got.Cure != c.Cure {
			t.Errorf("%+v, want %+v", got, c)
		}
	}
	table := func(title string) page.Table {
		for _, table := range view.Tables {
			if table.Title == title {
				return table
			}
		}
		t.Fatalf("no table %q", title)
		return page.Table{}
	}
	if images, packages := table("Images"), table("Packages"); images.None != noImages || images.Problem != "" || packages.None != noPackages || packages.Problem != "" {
		t.Errorf("%+v, %+v", images, packages)
	}
	text := printed(func(o Options) error {
		o.JSON = false
		row, err := newStatus(t.Context(), o)
		if err != nil {
			return err
		}
		return printDisk(o, row.Disk, row.Bytes)
	})
	for _, row := range table("On the disk").Rows {
		if !strings.Contains(text, row[0]+" ") || !strings.Contains(text, row[3]) {
			t.Errorf("%q is not in %s", row, text)
		}
	}
	wrong := errors.New("config.toml is broken")
	o.again = func() (Options, error) { return Options{}, wrong }
	if view := o.sandbox(t.Context()); view.Problem != wrong.Error() {
		t.Errorf("with a broken file: %+v", view)
	}
}

// TestUIStartsWithAMistakeInASetting that only the page of the sandbox needs, which says so. Flags and the
// settings that all pages need must be right.
func TestUIStartsWithAMistakeInASetting(t *testing.T) {
	for name, c := range map[string]struct {
		variable, value string
		args            []string
		mistake         bool // that the page says
		refused         string
	}{
		"none":           {"", "", nil, false, ""},
		"memory":         {"TOOLCELL_MEMORY", "lots", nil, true, ""},
		"a kind of pull": {"TOOLCELL_PULL", "perhaps", []string{"--policy=/p.toml"}, true, ""},
		"a flag":         {"", "", []string{"--memory=lots"}, false, "setting --memory"},
		"both":           {"TOOLCELL_PULL", "perhaps", []string{"--memory=lots"}, false, "setting --memory"},
		"what all need":  {"TOOLCELL_ALLOW_SELF_SERVER", "perhaps", nil, false, "setting TOOLCELL_ALLOW_SELF_SERVER"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := pageOf(t)
			t.Setenv("TOOLCELL_STATE_DIR", t.TempDir())
			t.Setenv("TOOLCELL_IMAGE", "host")
			if c.variable != "" {
				t.Setenv(c.variable, c.value)
			}
			var view page.SandboxView
			var got Options
			command := uiCommand(o.Streams)
			command.Action = actionWith(o.Streams, func(c *cli.Context, started Options) error {
				got, o.again = started, func() (Options, error) { return started.withSettings(c) }
				view = o.sandbox(t.Context())
				return nil
			})
			err := (&cli.App{Name: "toolcell", Commands: []*cli.Command{command}}).Run(append([]string{"toolcell", "ui"}, c.args...))
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("it starts: %v", err)
				}
				return
			}
			if err != nil || got.Settings.StateDir != os.Getenv("TOOLCELL_STATE_DIR") || len(view.Tables) != 3 {
				t.Errorf("%v, %+v", err, view)
			}
			if (view.Problem != "") != c.mistake || (len(view.Checks) == 0) != c.mistake || !strings.Contains(view.Problem, c.variable) || !strings.Contains(view.Problem, c.value) {
				t.Errorf("it says %q with %d checks", view.Problem, len(view.Checks))
			}
			if len(c.args) > 0 && got.Settings.Policy != "/p.toml" {
				t.Errorf("the flag does not count: %+v", got.Settings.Policy)
			}
		})
	}
}
