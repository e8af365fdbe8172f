package console

import "os"

// Streams are what a command has of its process: the standard streams, and the
// signals.
type Streams struct {
	In, Out, Err *os.File
	Signals      *Signals
}
