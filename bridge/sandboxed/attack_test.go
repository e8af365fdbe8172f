package sandboxed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/internal/ostest"
)

// TestServersDoNotChooseWhatIsShownNext: one that may write to a folder puts a link in the place of what
// is to be shown at the next start, or in the way to it.
func TestServersDoNotChooseWhatIsShownNext(t *testing.T) {
	l := newLab(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.Mkdir(in("open"), 0o777), os.Mkdir(in("private"), 0o755), os.WriteFile(in("private/key"), []byte("secret"), 0o644),
		os.Symlink(in("open"), in("of the user")), os.Symlink("../private", in("open/planted")), os.Symlink("open/planted", in("through")),
		os.Symlink(".", in("open/again")), os.Symlink("loop", in("loop")), os.Chmod(dir, 0o755),
	); err != nil {
		t.Fatal(err)
	}
	l.written = []string{in("of the user"), in("missing")}
	for name, want := range map[string]string{
		"open/planted":             "is a link in a folder that a sandbox may write to",
		"open/planted/key":         "is a link in a folder that a sandbox may write to",
		"of the user/planted":      "is a link in a folder that a sandbox may write to",
		"through":                  "is a link in a folder that a sandbox may write to",
		"open/again/again/planted": "is a link in a folder that a sandbox may write to",
		"open/again":               "is a link in a folder that a sandbox may write to",
		"loop":                     "is one link too many",
		"open/none":                "no such file or directory",
		"of the user":              "",
	} {
		section := `mounts = [{ source = "` + in(name) + `", target = "/shown" }]`
		started, err := l.Launch(t.Context(), shell("ls /shown"), boxOf(t, section))
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "[servers.x]") {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		}
		if started != nil {
			started.Child.Await()
			started.Child.Reap()
			closePipes(started)
		}
	}
	if open := ostest.OpenFiles(t, dir); len(open) > 0 {
		t.Errorf("left open: %q", open)
	}
}
