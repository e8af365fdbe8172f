package main

import "os"

// streams are what a command has of its process: the standard streams, and the
// signals.
type streams struct {
	in, out, err *os.File
	signals      *signals
}
