package main

import (
	"errors"
	"strings"
	"testing"

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
