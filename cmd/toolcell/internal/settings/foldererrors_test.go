package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestExplainNamesTheFullFolder: what was written is removed again, so that the disk
// has room when the error is explained. The user must know which one it was.
func TestExplainNamesTheFullFolder(t *testing.T) {
	dir := t.TempDir()
	d := Dirs{Cache: filepath.Join(dir, "cache"), State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"a layer, with its path in the image": {&os.PathError{Op: "write", Path: "usr/lib/x.so", Err: unix.ENOSPC}, d.Cache},
		"a package":                           {&os.PathError{Op: "write", Path: d.Cache + "/packages/wheel", Err: unix.EDQUOT}, d.Cache},
		"a saved tool":                        {&os.PathError{Op: "write", Path: d.State + "/tools/x", Err: unix.ENOSPC}, d.State},
		"what a process keeps":                {&os.PathError{Op: "mkdir", Path: d.Run + "/instance", Err: unix.ENOSPC}, d.Run},
		"a file that was renamed":             {&os.LinkError{Op: "rename", Old: "x", New: d.State + "/trust.json", Err: unix.ENOSPC}, d.State},
	} {
		got := d.Explain(fmt.Errorf("keeping it: %w", tt.err))
		if !strings.Contains(got.Error(), "there is no space for "+tt.want+" ") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
