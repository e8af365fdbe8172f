package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci/doctor"
)

func TestDoctorSummary(t *testing.T) {
	ok, missing, fatal := doctor.Check{Status: doctor.CheckOK}, doctor.Check{Status: doctor.CheckDegraded}, doctor.Check{Code: "RC-PROC", Status: doctor.CheckFatal}
	for _, tt := range []struct {
		checks []doctor.Check
		want   string
		code   int
	}{
		{[]doctor.Check{ok}, "this host can run sandboxes", console.ExitOK},
		{[]doctor.Check{ok, missing}, "this host can run sandboxes, with 1 problem", console.ExitFail},
		{[]doctor.Check{missing, missing, ok}, "this host can run sandboxes, with 2 problems", console.ExitFail},
		{[]doctor.Check{missing, fatal, ok}, "this host cannot run sandboxes; first fix RC-PROC", console.ExitHost},
	} {
		if got, code := summary(tt.checks); got != tt.want || code != tt.code {
			t.Errorf("got %q and %d, want %q and %d", got, code, tt.want, tt.code)
		}
	}
}

// TestDoctorWithoutPython: a host without Python can still run images.
func TestDoctorWithoutPython(t *testing.T) {
	none := errors.New("no python3")
	c := sandboxCheck(t.Context(), settings.Settings{}, []doctor.Check{{Status: doctor.CheckDegraded}}, none)
	if c.Status != doctor.CheckDegraded || !strings.Contains(c.Cure, " exec -c ") {
		t.Errorf("got %+v", c)
	}
	c = sandboxCheck(t.Context(), settings.Settings{}, []doctor.Check{{Code: "RC-USERNS-CLONE", Status: doctor.CheckFatal}}, none)
	if c.Status != doctor.CheckFatal || !strings.Contains(c.Text, "RC-USERNS-CLONE") {
		t.Errorf("got %+v", c)
	}
}

// TestDoctorHasTheFixOfAFolderThatOthersCanChange, as a comment: it is no command.
func TestDoctorHasTheFixOfAFolderThatOthersCanChange(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	if err := errors.Join(os.Mkdir(cache, 0o755), os.Chmod(cache, 0o777)); err != nil {
		t.Fatal(err)
	}
	dirs, err := settings.FindDirs(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := sandboxCheck(t.Context(), settings.Settings{StateDir: dir, Dirs: dirs}, nil, nil)
	if got.Status != doctor.CheckFatal || !strings.Contains(got.Text, cache+" can be written to by other users") || !strings.HasPrefix(got.Cure, "# chmod go-w "+cache) {
		t.Errorf("got %+v", got)
	}
}

func TestPrintChecks(t *testing.T) {
	var b bytes.Buffer
	printChecks(&b, false, []doctor.Check{
		{Code: "RC-A", Status: doctor.CheckOK, Text: "well"},
		{Code: "RC-LONGER", Status: doctor.CheckDegraded, Text: "not well", Cure: "do this\nand this"},
	})
	const want = "ok        RC-A      well\n" +
		"degraded  RC-LONGER not well\n" +
		"                    fix: do this\n" +
		"                         and this\n" +
		"this host can run sandboxes, with 1 problem\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestDoctorLooksAtTheProject only if code can read it, and does not complain where there is
// none.
func TestDoctorLooksAtTheProject(t *testing.T) {
	home := t.TempDir()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, ".env"), nil, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Chdir(dir)
	conf := settings.Settings{Dirs: settings.Dirs{Cache: home + "/c", State: home + "/s", Run: home + "/r"}}
	if shown, checks := examineProject(t.Context(), conf); shown != nil || len(checks) > 0 {
		t.Errorf("without the setting: %+v, %+v", shown, checks)
	}
	conf.Project = settings.ProjectRead
	shown, checks := examineProject(t.Context(), conf)
	if shown == nil || shown.Source != dir || !slices.Equal(shown.Hidden, []string{".env"}) || len(checks) > 0 {
		t.Errorf("in a project: %+v, %+v", shown, checks)
	}
	for n := range 513 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(n)+".pem"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if shown, checks = examineProject(t.Context(), conf); shown != nil || len(checks) != 1 || checks[0].Status != doctor.CheckDegraded || !strings.Contains(checks[0].Cure, "--mounts FOLDER:/project") {
		t.Errorf("in a large one: %+v, %+v", shown, checks)
	}
	t.Chdir(home)
	if shown, checks = examineProject(t.Context(), conf); shown != nil || len(checks) != 1 || checks[0].Status != doctor.CheckOK || !strings.Contains(checks[0].Text, "it is, or contains, your home directory") {
		t.Errorf("at home: %+v, %+v", shown, checks)
	}
}
