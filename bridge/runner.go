package bridge

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

//go:embed runner.py
var runnerSource []byte

// runnerParts are what the runner asks for when it needs it, by name: each line
// costs every start some time, as an image may not keep what Python compiled.
var runnerParts = map[string]string{
	"display": runnerDisplay, "errors": runnerErrors, "saved": runnerSaved, "session": runnerSession, "show": runnerShow, "tools": runnerTools,
	"where": runnerWhere,
}

//go:embed runner_display.py
var runnerDisplay string

//go:embed runner_errors.py
var runnerErrors string

//go:embed runner_show.py
var runnerShow string

//go:embed runner_tools.py
var runnerTools string

//go:embed runner_saved.py
var runnerSaved string

//go:embed runner_session.py
var runnerSession string

//go:embed runner_where.py
var runnerWhere string

// Manual is what the model may read about the Python inside; the capabilities
// resource and runtime.capability_summary() give it.
//
//go:embed manual.md
var Manual string

// RunnerPath is where a sandbox sees the runner.
const RunnerPath = "/run/runcell/runner.py"

// runnerMode lets the sandbox's user read the runner, whatever our umask is.
const runnerMode = 0o444

// WriteRunner puts the runner into dir, which is made if need be, and returns
// its path. The name has the digest of the content: two versions of this
// program can share the folder.
func WriteRunner(dir string) (string, error) {
	sum := sha256.Sum256(runnerSource)
	path := filepath.Join(dir, "runner-"+hex.EncodeToString(sum[:8])+".py")
	if info, err := os.Lstat(path); err == nil && info.Mode() == runnerMode {
		if have, err := os.ReadFile(path); err == nil && string(have) == string(runnerSource) {
			return path, nil
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("writing the runner: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".runner-*")
	if err != nil {
		return "", fmt.Errorf("writing the runner: %w", err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(runnerSource)
	if err == nil {
		err = tmp.Chmod(runnerMode)
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return "", fmt.Errorf("writing the runner: %w", err)
	}
	return path, nil
}
