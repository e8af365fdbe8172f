package oci

import "github.com/toolcell/toolcell/oci/container"

// An Instance is a process that has a Runtime, now or until it was killed.
type Instance = container.Instance

// Instances returns the processes that have a Runtime in the state folder dir, or were killed
// and have left theirs. It starts and removes nothing.
func Instances(dir string) ([]Instance, error) { return container.Instances(dir) }

// HoldStarts returns the same, and keeps other processes from opening a Runtime in dir until
// release is called.
func HoldStarts(dir string) (release func(), all []Instance, err error) {
	return container.HoldStarts(dir)
}

// Sweep ends and removes the sandboxes that killed processes left in dir, as Open does. The caller
// holds starts there.
func Sweep(dir string) { container.Sweep(dir) }
