package console

import "os"

// Streams are the standard streams and the signals of a command's process.
type Streams struct {
	In, Out, Err *os.File
	Signals      *Signals
}
