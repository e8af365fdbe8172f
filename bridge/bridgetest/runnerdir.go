package bridgetest

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// runnerDir is the runner's package in a folder that all tests of this process share.
var runnerDir struct {
	once         sync.Once
	parent, path string
	err          error
}

// Main runs the tests of a package that uses RunnerDir, and removes that folder.
func Main(m *testing.M) {
	code := m.Run()
	if runnerDir.parent != "" {
		os.RemoveAll(runnerDir.parent)
	}
	os.Exit(code)
}

// RunnerDir returns where runner.Write has put the runner's package for all tests of
// this process.
func RunnerDir(t *testing.T, write func(dir string) (string, error)) string {
	t.Helper()
	d := &runnerDir
	d.once.Do(func() {
		if d.parent, d.err = os.MkdirTemp("", "toolcell-runner-"); d.err != nil {
			return
		}
		if d.err = os.Chmod(d.parent, 0o755); d.err == nil { // for tests that start it as another user
			d.path, d.err = write(d.parent)
		}
	})
	if d.err != nil {
		t.Fatal(d.err)
	}
	return d.path
}

// compiling has a function for each interpreter and folder.
var compiling sync.Map

// Compile leaves the bytecode of a Python beside the modules in a folder, once in this
// process: starting the runner takes several times as long without it.
func Compile(python, dir string) error {
	compile, _ := compiling.LoadOrStore([2]string{python, dir}, sync.OnceValue(func() error {
		if out, err := exec.Command(python, "-s", "-m", "compileall", "-q", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("compiling %s: %w: %s", dir, err, out)
		}
		return nil
	}))
	return compile.(func() error)()
}
