package doctor

import (
	"fmt"
	"os"
	"testing"

	"github.com/toolcell/toolcell/oci/host"
	"github.com/toolcell/toolcell/oci/spec"
)

// TestProjectThatCodeCannotRead is named with what helps, and changes no ID.
func TestProjectThatCodeCannotRead(t *testing.T) {
	dir := t.TempDir()
	p := spec.Project{Source: dir}
	other := int64(os.Geteuid() + 4242) // neither owner nor root
	h := spec.Host{EUID: int(other), UIDs: host.IDMap{Root: other, User: 100000}}
	cure := fmt.Sprintf("chmod o+rx %s   # or give code your user ID: --project=off --mounts %[1]s:/project", dir)
	for mode, denied := range map[os.FileMode]bool{0o755: false, 0o705: false, 0o750: true, 0o711: true, 0o700: true} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		why, got := DeniedProject(h, p)
		text := fmt.Sprintf("code cannot read /project: %s belongs to uid %d (mode %04o), and the code is uid 100000 for it", dir, os.Geteuid(), mode)
		want := OK("RC-MOUNT", "code can read /project, which is "+dir+" here")
		switch {
		case denied:
			want = Degraded("RC-MOUNT", text, cure)
			if why != text || got != cure {
				t.Errorf("%04o: %q, %q", mode, why, got)
			}
		case why != "" || got != "":
			t.Errorf("%04o: %q, %q", mode, why, got)
		}
		if checks := mountChecks(h.Showing(&p)); len(checks) != 1 || checks[0] != want {
			t.Errorf("%04o: %+v, want %+v", mode, checks, want)
		}
	}
}
