package bridge

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

//go:embed runner.py
var runnerMain string

// runnerFiles are parts of the runner that only some runs need: the runner
// keeps them as text, since each line that Python compiles costs every start.
//
//go:embed runner_*.py
var runnerFiles embed.FS

// runnerSource is the runner with its parts and the manual, as raw strings of
// Python's. It is put together only where it is asked for: this package is also
// part of each sandbox's first process.
var runnerSource = sync.OnceValue(func() []byte {
	var given strings.Builder
	raw := func(name, text string) {
		if strings.Contains(text, "'''") || strings.HasSuffix(text, "\\") {
			panic(name + " does not fit into a raw string") // it is embedded: no run gets here
		}
		given.WriteString("r'''" + text + "'''")
	}
	given.WriteString("PARTS = {")
	files, err := runnerFiles.ReadDir(".")
	for _, f := range files {
		source, readErr := runnerFiles.ReadFile(f.Name())
		err = errors.Join(err, readErr)
		part := strings.TrimSuffix(strings.TrimPrefix(f.Name(), "runner_"), ".py")
		given.WriteString("'" + part + "': ")
		raw(f.Name(), string(source))
		given.WriteString(", ")
	}
	if err != nil {
		panic(err) // of an embedded folder
	}
	given.WriteString("}\nMANUAL = ")
	raw("the manual", Manual)
	return []byte(strings.Replace(runnerMain, "PARTS = {}\nMANUAL = \"\"", given.String(), 1))
})

// Manual is what the model may read about the Python inside; the capabilities
// resource and runtime.capability_summary() give it.
//
//go:embed manual.md
var Manual string

// RunnerPath is where a sandbox sees the runner.
const RunnerPath = "/run/toolcell/runner.py"

// runnerMode lets the sandbox's user read the runner, whatever our umask is.
const runnerMode = 0o444

// WriteRunner puts the runner into dir, which is made if need be, and returns
// its path. The name has the digest of the content: two versions of this
// program can share the folder.
func WriteRunner(dir string) (string, error) {
	source := runnerSource()
	sum := sha256.Sum256(source)
	path := filepath.Join(dir, "runner-"+hex.EncodeToString(sum[:8])+".py")
	if info, err := os.Lstat(path); err == nil && info.Mode() == runnerMode {
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, source) {
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
	_, err = tmp.Write(source)
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
