// Package console is the program's side of the terminal: the standard streams
// and the signals, colors, tables that keep to the width, bars of a pull, JSON
// output, exit codes. Untrusted text is printed without control characters; the output of
// code keeps its colors. In a file or a pipe there are no colors of ours, tables are whole,
// and the output of code is unchanged.
package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/toolcell/toolcell/internal/text"
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

// Exit codes of every command.
const (
	ExitOK    = 0
	ExitFail  = 1 // the run's own failure
	ExitUsage = 2 // wrong usage, or a value or file that cannot be used
	ExitHost  = 3 // the host cannot run sandboxes
)

// An ExitError ends the program with a code. Without an error nothing more is
// printed.
type ExitError struct {
	Code int
	Err  error
	Help bool // the help of the command answers the error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error of wrong flags or arguments, which ends the program with
// ExitUsage and names the command's help.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...), Help: true}
}

// Invalidf returns an error of a value or file that cannot be used, which ends the
// program with ExitUsage. Help would not explain it, so the error has to.
func Invalidf(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// PrintJSON prints a list on standard output; an empty one is [], not null. Control
// characters are escaped, also those that JSON would allow.
func PrintJSON[T any](s *Streams, list []T) error {
	if list == nil {
		list = []T{}
	}
	return PrintJSONObject(s, list)
}

// PrintJSONObject prints one value, as PrintJSON does a list.
func PrintJSONObject(s *Streams, value any) error {
	s.JSONPrinted = true
	return writeJSON(s.Out, value)
}

// PrintJSONLine prints a value that is JSON already on one line, as PrintJSONObject does.
func PrintJSONLine(s *Streams, value json.RawMessage) error {
	s.JSONPrinted = true
	return encodeJSON(s.Out, value, "")
}

func writeJSON(w io.Writer, value any) error { return encodeJSON(w, value, "  ") }

func encodeJSON(w io.Writer, value any, indent string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // it is for people, not for a web page
	e.SetIndent("", indent)
	if err := e.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(unescaped().ReplaceAllFunc(b.Bytes(), func(c []byte) []byte {
		return fmt.Appendf(nil, `\u%04x`, bytes.Runes(c)[0])
	}))
	return err
}

// unescaped finds the control characters that package json does not escape. A
// terminal obeys some of them.
var unescaped = text.Pattern("[\u007f-\u009f]")
