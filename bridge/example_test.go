package bridge_test

import (
	"fmt"

	"github.com/toolcell/toolcell/bridge"
)

func ExampleResult_Text() {
	code := 1
	result := &bridge.Result{
		Status: bridge.StatusError, ExitCode: &code,
		Stdout: []string{"reading the file"}, Stderr: []string{"KeyError: 'title'"},
	}
	fmt.Println(result.Text(bridge.OutputCompact))
	// Output:
	// status: error
	// exit: 1
	// reading the file
	// stderr:
	// KeyError: 'title'
}

func ExampleParseOutputMode() {
	mode, err := bridge.ParseOutputMode("toon")
	fmt.Println(mode, err)
	// Output: toon <nil>
}
