package bridge

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed runner.py
var runnerMain string

// runnerFiles are parts of the runner that only some runs need: the runner
// keeps them as text, since each line that Python compiles costs every start.
//
//go:embed runner_*.py
var runnerFiles embed.FS

// runnerSource is the runner with its parts.
var runnerSource = func() []byte {
	parts := map[string]string{}
	files, err := runnerFiles.ReadDir(".")
	for _, f := range files {
		source, readErr := runnerFiles.ReadFile(f.Name())
		err = errors.Join(err, readErr)
		name, _ := strings.CutPrefix(strings.TrimSuffix(f.Name(), ".py"), "runner_")
		parts[name] = string(source)
	}
	text, jsonErr := json.Marshal(parts) // which Python reads as well
	if err := errors.Join(err, jsonErr); err != nil {
		panic(err) // of an embedded folder
	}
	return []byte(strings.Replace(runnerMain, "PARTS = {}", "PARTS = "+string(text), 1))
}()

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
