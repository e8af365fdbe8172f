package spec

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/toolcell/toolcell/oci/host"
)

// TestProjectIsReadOnlyAndChangesNoIDs, though only its owner may read it.
func TestProjectIsReadOnlyAndChangesNoIDs(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	other := Mount{Source: "/data", Target: "/data"}
	h := Host{EUID: os.Geteuid(), UIDs: host.IDMap{Root: int64(os.Geteuid()), User: 100000}, Mounts: []ShownMount{{Mount: other}}}
	shown := h.Showing(&Project{Source: dir, Hidden: []string{"a/.env", "a", "b.pem"}})
	if shown.UIDs != h.UIDs || shown.GIDs != h.GIDs || len(h.Mounts) != 1 || h.Showing(nil).Mounts[0].Mount != other {
		t.Errorf("the host is now %+v, and was %+v", shown, h)
	}
	all := hostMounts(shown)
	m := all[1]
	if m.Destination != "/project" || m.Source != dir || !slices.Equal(m.Options, []string{"bind", "nosuid", "nodev", "noexec", "ro"}) || len(m.UIDMappings) > 0 {
		t.Errorf("mounted: %+v", m)
	}
	if got := coveredMounts(shown); !slices.Equal(got, []string{"/project/a", "/project/b.pem"}) {
		t.Errorf("covered: %q", got)
	}
	if got := Readable(Process{}, shown); !slices.Contains(got, "/project") || len(shown.WritableTargets()) > 0 {
		t.Errorf("readable: %q", got)
	}
	if got := (Host{Mounts: []ShownMount{{Mount: other}}}).ShowingAs(shown).Mounts; len(got) != 2 || !got[1].Project || got[1].Source != dir {
		t.Errorf("as the other: %+v", got)
	}
	if got := [2]string{shown.Mounts[0].Setting(), shown.Mounts[1].Setting()}; got != [2]string{"TOOLCELL_MOUNTS", "--project"} {
		t.Errorf("settings: %q", got)
	}
}

// TestReplacedProjectIsRefused, under the name of its setting.
func TestReplacedProjectIsRefused(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	err = Host{}.Showing(&Project{Source: link}).CheckMounts()
	if want := `showing "` + link + `" in the sandbox (--project): it has become a link to "` + dir + `"`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
