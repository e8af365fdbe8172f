package main

import (
	"errors"
	"fmt"
	"github.com/toolcell/toolcell/cmd/toolcell/internal/console"
	"os"
	"path/filepath"
)

// dirs are the folders that the program works in.
type dirs struct {
	cache string // images: can be made again
	state string // what the user would miss: saved tools, files of runs
	run   string // what goes on now
}

// findDirs follows the XDG Base Directory Specification, unless one folder is
// named for everything.
func findDirs(one string) (dirs, error) {
	if one != "" {
		abs, err := filepath.Abs(one)
		if err != nil {
			return dirs{}, fmt.Errorf("finding the state folder: %w", err)
		}
		return dirs{filepath.Join(abs, "cache"), filepath.Join(abs, "state"), filepath.Join(abs, "run")}, nil
	}
	home, err := os.UserHomeDir()
	if err != nil && (os.Getenv("XDG_CACHE_HOME") == "" || os.Getenv("XDG_STATE_HOME") == "") {
		return dirs{}, &console.ExitError{Code: console.ExitUsage, Err: errors.New("there is no HOME; set it, or MCP_BRIDGE_STATE_DIR")}
	}
	d := dirs{
		cache: filepath.Join(xdg("XDG_CACHE_HOME", filepath.Join(home, ".cache")), "toolcell"),
		state: filepath.Join(xdg("XDG_STATE_HOME", filepath.Join(home, ".local", "state")), "toolcell"),
	}
	// Without a runtime folder, which some MCP clients do not pass on, the
	// state folder serves: what a reboot leaves in it is swept.
	d.run = filepath.Join(d.state, "run")
	if dir := xdg("XDG_RUNTIME_DIR", ""); dir != "" {
		d.run = filepath.Join(dir, "toolcell")
	}
	return d, nil
}

// xdg reads one of the specification's variables: "All paths set in these
// environment variables must be absolute", others count as unset.
func xdg(name, otherwise string) string {
	if v := os.Getenv(name); filepath.IsAbs(v) {
		return v
	}
	return otherwise
}

// tools is where saved tools are kept.
func (d dirs) tools() string { return filepath.Join(d.state, "tools") }

// self is the resolved path of this program.
func self() string {
	exe, err := os.Executable()
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(exe); err == nil {
		return real
	}
	return exe
}
