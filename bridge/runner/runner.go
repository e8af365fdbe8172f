// Package runner contains the Python package that runs code inside a sandbox, as
// files to mount and start, and the host's end of its protocol.
//
// It promises that Conn.Run ends with ctx or the run's time whatever the other end
// sends, and that size and number of what is read from there are bounded. It knows
// neither how a sandbox is made nor what a call means: a Sandbox and a Host do.
package runner

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/toolcell/toolcell/internal/contain"
	"github.com/toolcell/toolcell/internal/state"
)

// Where a sandbox sees the package.
const (
	Dir         = "/run/toolcell/toolcell_runner"
	Program     = Dir + "/__main__.py"      // what Python starts
	BytecodeDir = Dir + "/__pycache__"      // where Python looks for bytecode, if there is any
	PrintedDir  = "/tmp/toolcell"           // where a run finds what the one before it has printed: Start.Printed
	RootsFile   = PrintedDir + "/roots.pem" // certificates to trust: Network.Roots
)

// The folder alone would leave out __init__.py and __main__.py.
//
//go:embed toolcell_runner/*.py toolcell_runner/manual.md
var embedded embed.FS

// Manual is the model's manual of the Python inside, returned by the
// capabilities resource and runtime.capability_summary().
//
//go:embed toolcell_runner/manual.md
var Manual string

// Files returns the content of each file of the package, by its name.
var Files = sync.OnceValue(contain.Value("reading the runner", nil, func() map[string][]byte {
	files := map[string][]byte{}
	entries, err := embedded.ReadDir("toolcell_runner")
	for _, e := range entries {
		content, readErr := embedded.ReadFile("toolcell_runner/" + e.Name())
		files[e.Name()], err = content, errors.Join(err, readErr)
	}
	if err != nil {
		panic(err) // of an embedded folder
	}
	return files
}))

// name has the digest of the package: two versions of this program can share
// a folder.
var name = sync.OnceValue(contain.Value("naming the runner", "runner-unknown", func() string {
	sum := sha256.New()
	entries, _ := embedded.ReadDir("toolcell_runner") // sorted
	for _, e := range entries {
		content := Files()[e.Name()]
		fmt.Fprintf(sum, "%s %d\n%s", e.Name(), len(content), content)
	}
	return "runner-" + hex.EncodeToString(sum.Sum(nil)[:8])
}))

// Sandboxes' users read the package, whatever our umask is.
const fileMode, dirMode fs.FileMode = 0o444, 0o755

// Write puts the package into a folder of its own below dir, which is made if
// need be, and returns its path. Files that are already correct are left alone.
func Write(dir string) (string, error) {
	path := filepath.Join(dir, name())
	// Bytecode is mounted on __pycache__, which stays empty here.
	err := os.MkdirAll(filepath.Join(path, filepath.Base(BytecodeDir)), dirMode)
	for _, each := range []string{path, filepath.Join(path, filepath.Base(BytecodeDir))} {
		if err == nil {
			err = os.Chmod(each, dirMode)
		}
	}
	for file, content := range Files() {
		if err == nil {
			err = writeFile(filepath.Join(path, file), content)
		}
	}
	if err != nil {
		return "", fmt.Errorf("writing the runner: %w", err)
	}
	return path, nil
}

// writeFile replaces a file whose content or mode differs.
func writeFile(path string, content []byte) error {
	if info, err := os.Lstat(path); err == nil && info.Mode() == fileMode && info.Size() == int64(len(content)) {
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, content) {
			return nil
		}
	}
	// Sandboxes see the folder of the package, so nothing unfinished is written there.
	return state.Replace(path, content, state.Options{Mode: fileMode, Exact: true, Unsynced: true, TempDir: filepath.Dir(filepath.Dir(path))})
}
