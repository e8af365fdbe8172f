package bridge_test

import (
	"fmt"

	"github.com/toolcell/toolcell/bridge"
	"github.com/toolcell/toolcell/bridge/run"
)

func ExampleText() {
	code := 1
	result := &run.Result{
		Status: run.StatusError, ExitCode: &code,
		Stdout: []string{"reading the file"}, Stderr: []string{"KeyError: 'title'"},
	}
	fmt.Println(bridge.Text(result, bridge.OutputCompact))
	// Output:
	// status: error
	// exit: 1
	// reading the file
	// stderr:
	// KeyError: 'title'
}
