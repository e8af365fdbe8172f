package console

import (
	"io"
	"os"
)

// Streams are the standard streams and the signals of a command's process.
type Streams struct {
	In, Out, Err *os.File
	Signals      *Signals
	JSONPrinted  bool // by PrintJSON

	outErr error
}

// Stdout returns Out for prints that do not look at their error: WriteError returns
// the first, and makes the command fail.
func (s *Streams) Stdout() io.Writer { return stdout{s} }

// WriteError returns why not all of standard output could be written.
func (s *Streams) WriteError() error { return s.outErr }

type stdout struct{ s *Streams }

func (o stdout) Write(b []byte) (int, error) {
	n, err := o.s.Out.Write(b)
	if err != nil && o.s.outErr == nil {
		o.s.outErr = err
	}
	return n, err
}
