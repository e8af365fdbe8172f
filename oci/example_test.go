package oci_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/toolcell/toolcell/oci"
	"github.com/toolcell/toolcell/oci/spec"
)

// A process gets a sandbox of its own, which ctx bounds. The root file system
// comes from package rootfs.
func ExampleRuntime_Start() {
	answer := func(ctx context.Context, runtime *oci.Runtime) (code int, err error) {
		sb, err := runtime.Start(ctx, oci.Process{
			Root:   spec.Root{Dir: "/var/lib/images/python"},
			Args:   []string{"/usr/local/bin/python3", "-c", "print(6 * 7)"},
			Limits: spec.Limits{Memory: 256 << 20, PIDs: 64},
			Stdout: os.Stdout, // Start closes it
		})
		if err != nil {
			return 0, err
		}
		defer sb.Close()
		exit, err := sb.Wait()
		return exit.Code, err
	}

	runtime, err := oci.Open("/run/user/1000/toolcell", 65534, 65534)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	defer runtime.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel() // a sandbox that still runs would be killed
	code, err := answer(ctx, runtime)
	fmt.Fprintln(os.Stderr, "exit code", code, err)
}
