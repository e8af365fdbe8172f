package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/oci/doctor"
	"github.com/toolcell/toolcell/rootfs/cachedir"
	"golang.org/x/sys/unix"
)

func TestPathGetsTheStandardFoldersItLacks(t *testing.T) {
	const all = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for path, want := range map[string]string{
		"":                             all, // and no empty element, which would be the current folder
		all:                            all,
		"/usr/bin:/bin":                "/usr/bin:/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin",
		"/home/ann/bin:/usr/bin/:/opt": "/home/ann/bin:/usr/bin/:/opt:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin",
		"usr/bin":                      "usr/bin:" + all,
		":/bin":                        ":/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin",
	} {
		t.Setenv("PATH", path)
		CompletePath()
		if got := os.Getenv("PATH"); got != want {
			t.Errorf("PATH=%q became %q, want %q", path, got, want)
		}
	}
}

// TestOwnFilesAreFoundBehindLinks: managers of dotfiles link them, and code must not get to the real ones.
func TestOwnFilesAreFoundBehindLinks(t *testing.T) {
	home := inHome(t)
	dotfiles := filepath.Join(home, "dotfiles")
	if err := errors.Join(os.MkdirAll(ConfigDir(), 0o700), os.Mkdir(dotfiles, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.toml", "policy.toml"} {
		real := filepath.Join(dotfiles, name)
		if err := errors.Join(os.WriteFile(real, nil, 0o600), os.Symlink(real, filepath.Join(ConfigDir(), name))); err != nil {
			t.Fatal(err)
		}
		if got := InTheWay(dotfiles, Settings{}.OwnFiles()); got != real {
			t.Errorf("%s: %q is in the way", name, got)
		}
		if err := os.Remove(filepath.Join(ConfigDir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := InTheWay(dotfiles, Settings{}.OwnFiles()); got != "" {
		t.Errorf("without links %q is in the way", got)
	}
}

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

// TestExplainSaysHowToFixAFolder, in an error that ends every command with the same code.
func TestExplainSaysHowToFixAFolder(t *testing.T) {
	d := Dirs{Cache: "/proc/x/cache", State: "/proc/x/state", Run: "/proc/x/run"}
	for name, tt := range map[string]struct {
		err        error
		want, hint string
	}{
		"one that cannot be made":       {os.MkdirAll(d.Cache, 0o755), "nothing can be written to /proc", "export TOOLCELL_STATE_DIR="},
		"one that others can change":    {fmt.Errorf("looking: %w", &cachedir.UntrustedError{Dir: d.Cache, Why: "belongs to another user", Cure: "remove it"}), "belongs to another user", "remove it"},
		"a file that is not there":      {&os.PathError{Op: "open", Path: "/elsewhere/x", Err: unix.ENOENT}, "open /elsewhere/x", ""},
		"a file of a folder that works": {&os.PathError{Op: "open", Path: t.TempDir() + "/state/x", Err: unix.ENOENT}, "state/x", ""},
	} {
		got := d
		if tt.hint == "" {
			path, _ := errors.AsType[*os.PathError](tt.err)
			dir := filepath.Dir(filepath.Dir(path.Path))
			got = Dirs{Cache: filepath.Join(dir, "cache"), State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")}
		}
		err := got.Explain(tt.err)
		hint, explained := errors.AsType[*doctor.HintError](err)
		if !strings.Contains(err.Error(), tt.want) || explained != (tt.hint != "") || explained && !strings.Contains(hint.Hint, tt.hint) {
			t.Errorf("%s: %v, hint %v", name, err, hint)
		}
	}
}
