package fork

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolcell/toolcell/oci/container"
	"github.com/toolcell/toolcell/oci/ocitest"
	"github.com/toolcell/toolcell/oci/spec"
)

const waitingProgram = `
def before_preload(): pass
def warm_up(): pass
def prepare(): pass
def ended(prepared, code): pass
def main(prepared=None): return 0
`

// TestStandbysReexecuteThisBinary: without the hook of package container the
// test binary would run its tests again in the sandbox, and no program would
// come to wait.
func TestStandbysReexecuteThisBinary(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		t.Skip("needs the host's own Python")
	}
	ocitest.NeedNamespaces(t)
	r, err := container.Open(filepath.Join(t.TempDir(), "run"), 65534, 65534)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h, err := r.Host()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "program.py"), []byte(waitingProgram), 0o644); err != nil {
		t.Fatal(err)
	}
	p := spec.Process{
		Root:   ocitest.HostRoot(t),
		Binds:  []spec.Bind{{Source: dir, Target: spec.OwnDir + "/test"}},
		Env:    []string{"PATH=/usr/bin:/bin"},
		Python: &spec.Python{Interpreter: []string{python, "-s", "-B"}, Program: spec.OwnDir + "/test/program.py"},
	}
	ahead, _, err := NewStandby(r, p, h)
	if err != nil {
		t.Fatal(err)
	}
	if !ahead.Alive() {
		t.Error("the container that waits has ended")
	}
	ahead.Discard()
	tmpl, err := NewTemplate(r, p, h)
	if err != nil {
		t.Skip("there are no forks here: ", err)
	}
	fork, err := tmpl.Fork(false)
	if err != nil {
		t.Fatal(err)
	}
	if !fork.Alive() || tmpl.Count() != 1 {
		t.Errorf("the fork lives: %t, of %d", fork.Alive(), tmpl.Count())
	}
	fork.Discard()
	tmpl.Retire()
	<-tmpl.Ended()
}
