package oci_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/toolcell/toolcell/oci"
)

// Start returns a handle: the process is spoken with over Conn, and Wait says how
// it ended. The root file system comes from package rootfs.
func ExampleRuntime_Start() {
	runtime, err := oci.Open("/run/user/1000/toolcell", 65534, 65534)
	if err != nil {
		log.Fatal(err)
	}
	defer runtime.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // would kill it

	sb, err := runtime.Start(ctx, oci.Process{
		Root:   oci.Root{Dir: "/var/lib/images/python"},
		Args:   []string{"/usr/local/bin/python3", "-c", "print(6 * 7)"},
		Limits: oci.Limits{Memory: 256 << 20, PIDs: 64},
		Stdout: os.Stdout, // Start closes it
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sb.Close()
	exit, err := sb.Wait()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprintln(os.Stderr, "exit code", exit.Code)
}
