package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestCommands runs the scripts in testdata/commands, each with a home and a state folder of
// its own. `exits CODE PROGRAM…` is exec for a program that ends with a code. `firstrun NAME` sets a
// variable to the ID of the first run that the command before it has printed as JSON. fakeserver is
// the server that FAKE_SERVER, its variable in the scripts' configs, names.
//
//test:mainjob
func TestCommands(t *testing.T) {
	fake, err := fakeBinary()
	if err != nil {
		t.Fatal(err)
	}
	programs := t.TempDir()
	for name, program := range map[string]string{"toolcell": bin, "fakeserver": fake} {
		if err := os.Symlink(program, filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/commands",
		Setup: func(e *testscript.Env) error {
			e.Vars = []string{
				"WORK=" + e.WorkDir, "HOME=" + e.WorkDir + "/home", "TOOLCELL_STATE_DIR=" + e.WorkDir + "/state",
				"PATH=" + programs + ":" + firstHost(t).path, "LANG=C.UTF-8",
			}
			return errors.Join(os.MkdirAll(e.WorkDir+"/home", 0o755), os.MkdirAll(e.WorkDir+"/project", 0o755))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "firstrun": firstRun},
	})
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT…]")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit %d, want %s", code, args[0])
	}
}

func firstRun(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: firstrun NAME")
	}
	var runs []struct{ Run string }
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &runs); err != nil || len(runs) == 0 {
		ts.Fatalf("no runs: %v", err)
	}
	ts.Setenv(args[0], runs[0].Run)
}
